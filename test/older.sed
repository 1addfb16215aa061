# What the source base's Triton writes in another form (RUN lines with %older).
s/ctaLayout = {warp = \[\]}/warpsPerCTA = [1, 1]/
# Only later versions of wmma can be transposed there.
s/isTranspose = true, ctaLayout = {warp = \[\[0, 1\], \[1, 0\]\]}/isTranspose = false, warpsPerCTA = [2, 2]/
s/blockN = 64, colStride = 1/blockN = 64, unpacked = true/

"""ldmatrix"""

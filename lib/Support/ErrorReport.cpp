//===- ErrorReport.cpp - Hands a pass's diagnostic to Python --------------===//

#include "ErrorReport.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

// The error that was seen last, and the one that Python was given.
static thread_local std::string firstError, takenError;

/// The place in the user's kernel: the outermost caller of inlined functions.
static FileLineColLoc userLocation(Location loc) {
  while (true) {
    if (auto call = dyn_cast<CallSiteLoc>(loc))
      loc = call.getCaller();
    else if (auto name = dyn_cast<NameLoc>(loc))
      loc = name.getChildLoc();
    else if (auto fused = dyn_cast<FusedLoc>(loc);
             fused && !fused.getLocations().empty())
      loc = fused.getLocations().front();
    else
      return dyn_cast<FileLineColLoc>(loc);
  }
}

/// Returns "file:line:column: text".
static std::string format(Diagnostic &diagnostic) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (FileLineColLoc loc = userLocation(diagnostic.getLocation()))
    os << loc.getFilename().getValue() << ":" << loc.getLine() << ":"
       << loc.getColumn() << ": ";
  os << diagnostic.str();
  return text;
}

namespace {

/// Listens to diagnostics while a pass runs. The thread that asked for it is
/// not always the one that the passes run on: a pass manager that prints
/// reproducers after a crash starts another.
struct ErrorKeeper : PassInstrumentation {
  explicit ErrorKeeper(std::string &error) : error(error) {}

  void runBeforePass(Pass *, Operation *op) override {
    DiagnosticEngine &engine = op->getContext()->getDiagEngine();
    // Called before older handlers; failure() passes the diagnostic on.
    handler = engine.registerHandler([this](Diagnostic &diagnostic) {
      // libtriton would drop remarks.
      if (diagnostic.getSeverity() == DiagnosticSeverity::Remark) {
        llvm::errs() << format(diagnostic) << "\n";
        return success();
      }
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error &&
          error.empty())
        error = format(diagnostic);
      return failure();
    });
  }
  void runAfterPass(Pass *, Operation *op) override { stop(op); }
  void runAfterPassFailed(Pass *, Operation *op) override { stop(op); }

  void stop(Operation *op) {
    op->getContext()->getDiagEngine().eraseHandler(handler);
  }

  std::string &error;
  DiagnosticEngine::HandlerID handler = 0;
};

} // namespace

void triton::scan::keepFirstError(PassManager &pm) {
  pm.addInstrumentation(std::make_unique<ErrorKeeper>(firstError));
}

const char *triton::scan::takeFirstError() {
  if (firstError.empty())
    return nullptr;
  takenError = std::move(firstError);
  firstError.clear();
  return takenError.c_str();
}

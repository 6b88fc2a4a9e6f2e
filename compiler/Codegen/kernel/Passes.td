// Passes on generated kernels that every target runs.
#ifndef CODEGEN_KERNEL_PASSES_TD
#define CODEGEN_KERNEL_PASSES_TD

include "dialects/PassFacts.td"

def ExpandMath : TitanPass<"titan-codegen-expand-math", "::mlir::ModuleOp"> {
  let summary = "replaces transcendental functions on f32 by polynomials";
  let description = [{
    Before: kernels with math ops on scalars and vectors. After: f32 functions are arithmetic with explicit `math.fma`, the same on a scalar and on
    each lane of a vector, so that a value's bits depend neither on the vector's length nor on its place in it. Errors in ulp: exp 1, log 1, tanh 5,
    erf 5. f64 functions and `pow` stay: they become calls of libm.

    ```mlir
    func.func @softplus(%x: vector<16xf32>) -> vector<16xf32> {
      %e = math.exp %x : vector<16xf32>
      %y = math.log1p %e : vector<16xf32>
      return %y : vector<16xf32>
    }
    ```

    Example: test/codegen/expand-math.mlir.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::vector::VectorDialect"];
}

#endif // CODEGEN_KERNEL_PASSES_TD

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

def ExpandWideMath : TitanPass<"titan-codegen-expand-wide-math", "::mlir::ModuleOp"> {
  let summary = "replaces functions on f64 by arithmetic, for a target without libm";
  let description = [{
    Before: kernels with math ops on f64, scalars or vectors. After: `sin` and `cos` are polynomials behind a reduction by pi/2 (2 ulp up to 2^30, NaN
    beyond), and a power whose exponent is an integer's value is a loop of multiplications. Other functions on f64 stay: what generates the code refuses
    them by name.

    ```mlir
    func.func @decay(%beta: f64, %t: i64) -> f64 {
      %e = arith.sitofp %t : i64 to f64
      %y = math.powf %beta, %e : f64
      return %y : f64
    }
    ```

    Example: test/codegen/expand-wide-math.mlir.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect"];
}

#endif // CODEGEN_KERNEL_PASSES_TD

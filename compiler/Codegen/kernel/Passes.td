// Passes on generated kernels: those that every target runs, and CardForms for cards alone.
#ifndef CODEGEN_KERNEL_PASSES_TD
#define CODEGEN_KERNEL_PASSES_TD

include "dialects/PassFacts.td"

def ExpandMath : TitanPass<"titan-codegen-expand-math", "::mlir::ModuleOp"> {
  let summary = "replaces transcendental functions on f32 by polynomials";
  let description = [{
    Before: kernels with math ops on scalars and vectors. After: f32 functions are arithmetic with explicit `math.fma`, the same on a scalar and on
    each lane of a vector, so that a value's bits depend neither on the vector's length nor on its place in it. Errors in ulp: exp 1, log 1, tanh 6,
    erf 6. f64 functions and `pow` stay: they become calls of libm. Remainders are exact: by f64 where no lane has a quotient of 2^28 or more,
    else by libm.

    ```mlir
    func.func @softplus(%x: vector<16xf32>) -> vector<16xf32> {
      %e = math.exp %x : vector<16xf32>
      %y = math.log1p %e : vector<16xf32>
      return %y : vector<16xf32>
    }
    ```

    Example: test/codegen/expand-math.mlir.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def ExpandWideMath : TitanPass<"titan-codegen-expand-wide-math", "::mlir::ModuleOp"> {
  let summary = "replaces functions on f64, and powers on f32, by arithmetic, for a target without libm";
  let description = [{
    Before: kernels with math ops on f64, scalars or vectors. After: `sin` and `cos` are polynomials behind a reduction by pi/2 (2 ulp up to 2^30, NaN
    beyond), and a power whose exponent is an integer's value is a loop of multiplications. Powers on f32 are computed in f64 and rounded once. Other
    functions on f64 stay: what generates the code refuses them by name.

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

def CardForms : TitanPass<"titan-codegen-card-forms", "::mlir::ModuleOp"> {
  let summary = "writes clamps, comparisons and widening as a card computes them in the fewest instructions";
  let description = [{
    Before: kernels whose math is expanded. After: a select that clamps f32 at a constant other than zero, and keeps NaN, is `arith.maximumf` or
    `arith.minimumf`; lanes numbered from a base on, in 64 bits, are compared with a number in 32 bits, and a number on
    one of them, zeros on the others, is subtracted or summed where that lane is among them; an even number of bf16 is widened by integers, two at a
    time. Values are the same. Of NaN the payload is not.

    ```mlir
    func.func @clamp(%x: vector<8xf32>) -> vector<8xf32> {
      %limit = arith.constant dense<-1.0> : vector<8xf32>
      %low = arith.cmpf olt, %x, %limit : vector<8xf32>
      %y = arith.select %low, %limit, %x : vector<8xi1>, vector<8xf32>
      return %y : vector<8xf32>
    }
    ```

    Example: test/codegen/card-forms.mlir.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

#endif // CODEGEN_KERNEL_PASSES_TD

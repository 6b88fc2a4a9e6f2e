// RUN: titan-opt %s --titan-differentiate-freeze-parameters --split-input-file --verify-diagnostics | FileCheck %s
// RUN: not titan-opt %s --titan-differentiate-freeze-parameters --split-input-file --remarks-filter="differentiate" 2>&1 | FileCheck %s --check-prefix=REMARK

// Patterns are about canonical names, and about those that a parameter is tied under.
// REMARK: predict.weight is frozen by model.frozen = 'predict.*'
// REMARK: wte.weight is frozen by model.frozen = 'lm_head.*'
// CHECK-LABEL: titan.state @fc.weight
// CHECK-SAME: trainable
// CHECK: titan.state @model.predict.weight
// CHECK-NOT: trainable
// CHECK: titan.state @wte.weight
// CHECK-NOT: trainable
module attributes {titan.recipe = {model = {frozen = ["predict.*", "lm_head.*"]}}} {
  titan.state @fc.weight : tensor<2xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}
  titan.state @model.predict.weight : tensor<2xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>, canonical_name = "predict.weight"}
  titan.state @wte.weight : tensor<2xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>, aliases = ["lm_head.weight"]}
}

// -----

// expected-error @+1 {{model.frozen = 'fc9.*' matches no parameter}}
module attributes {titan.recipe = {model = {frozen = ["fc9.*"]}}} {
  titan.state @fc.weight : tensor<2xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}
}

// -----

// expected-error @+1 {{no parameter is trainable, there is nothing to train: check model.frozen}}
module attributes {titan.recipe = {model = {frozen = ["*"]}}} {
  titan.state @fc.weight : tensor<2xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}
}

// A GPT-2 of two layers: 2 heads of 4, 6 positions, 19 tokens, tied head, dropout everywhere; attention as one op.
// The batch is the only extent of 2 that a tensor begins with: a test rewrites `tensor<2x` for another batch.
// No test of its own: read by the tests of every layer. tiny-gpt-decomposed.mlir computes the same.
module attributes {titan.recipe = {batch = {micro = 2 : i64, global = 4 : i64}}} {
  titan.state @transformer.wte.weight : tensor<19x8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.02 : f64>}
  titan.state @transformer.wpe.weight : tensor<6x8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.02 : f64>}
  titan.state @transformer.h.0.ln_1.weight : tensor<8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 1.0 : f64, 0.0 : f64>}
  titan.state @transformer.h.0.ln_1.bias : tensor<8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @transformer.h.0.attn.c_attn.weight : tensor<24x8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.02 : f64>}
  titan.state @transformer.h.0.attn.c_attn.bias : tensor<24xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @transformer.h.0.attn.c_proj.weight : tensor<8x8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.02 : f64>}
  titan.state @transformer.h.0.attn.c_proj.bias : tensor<8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @transformer.h.0.ln_2.weight : tensor<8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 1.0 : f64, 0.0 : f64>}
  titan.state @transformer.h.0.ln_2.bias : tensor<8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @transformer.h.0.mlp.c_fc.weight : tensor<32x8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.02 : f64>}
  titan.state @transformer.h.0.mlp.c_fc.bias : tensor<32xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @transformer.h.0.mlp.c_proj.weight : tensor<8x32xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.02 : f64>}
  titan.state @transformer.h.0.mlp.c_proj.bias : tensor<8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @transformer.h.1.ln_1.weight : tensor<8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 1.0 : f64, 0.0 : f64>}
  titan.state @transformer.h.1.ln_1.bias : tensor<8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @transformer.h.1.attn.c_attn.weight : tensor<24x8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.02 : f64>}
  titan.state @transformer.h.1.attn.c_attn.bias : tensor<24xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @transformer.h.1.attn.c_proj.weight : tensor<8x8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.02 : f64>}
  titan.state @transformer.h.1.attn.c_proj.bias : tensor<8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @transformer.h.1.ln_2.weight : tensor<8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 1.0 : f64, 0.0 : f64>}
  titan.state @transformer.h.1.ln_2.bias : tensor<8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @transformer.h.1.mlp.c_fc.weight : tensor<32x8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.02 : f64>}
  titan.state @transformer.h.1.mlp.c_fc.bias : tensor<32xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @transformer.h.1.mlp.c_proj.weight : tensor<8x32xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.02 : f64>}
  titan.state @transformer.h.1.mlp.c_proj.bias : tensor<8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @transformer.ln_f.weight : tensor<8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 1.0 : f64, 0.0 : f64>}
  titan.state @transformer.ln_f.bias : tensor<8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  func.func @model(%wte_weight: tensor<19x8xf32> {titan.state = @transformer.wte.weight},
                   %wpe_weight: tensor<6x8xf32> {titan.state = @transformer.wpe.weight},
                   %h_0_ln_1_weight: tensor<8xf32> {titan.state = @transformer.h.0.ln_1.weight},
                   %h_0_ln_1_bias: tensor<8xf32> {titan.state = @transformer.h.0.ln_1.bias},
                   %h_0_attn_c_attn_weight: tensor<24x8xf32> {titan.state = @transformer.h.0.attn.c_attn.weight},
                   %h_0_attn_c_attn_bias: tensor<24xf32> {titan.state = @transformer.h.0.attn.c_attn.bias},
                   %h_0_attn_c_proj_weight: tensor<8x8xf32> {titan.state = @transformer.h.0.attn.c_proj.weight},
                   %h_0_attn_c_proj_bias: tensor<8xf32> {titan.state = @transformer.h.0.attn.c_proj.bias},
                   %h_0_ln_2_weight: tensor<8xf32> {titan.state = @transformer.h.0.ln_2.weight},
                   %h_0_ln_2_bias: tensor<8xf32> {titan.state = @transformer.h.0.ln_2.bias},
                   %h_0_mlp_c_fc_weight: tensor<32x8xf32> {titan.state = @transformer.h.0.mlp.c_fc.weight},
                   %h_0_mlp_c_fc_bias: tensor<32xf32> {titan.state = @transformer.h.0.mlp.c_fc.bias},
                   %h_0_mlp_c_proj_weight: tensor<8x32xf32> {titan.state = @transformer.h.0.mlp.c_proj.weight},
                   %h_0_mlp_c_proj_bias: tensor<8xf32> {titan.state = @transformer.h.0.mlp.c_proj.bias},
                   %h_1_ln_1_weight: tensor<8xf32> {titan.state = @transformer.h.1.ln_1.weight},
                   %h_1_ln_1_bias: tensor<8xf32> {titan.state = @transformer.h.1.ln_1.bias},
                   %h_1_attn_c_attn_weight: tensor<24x8xf32> {titan.state = @transformer.h.1.attn.c_attn.weight},
                   %h_1_attn_c_attn_bias: tensor<24xf32> {titan.state = @transformer.h.1.attn.c_attn.bias},
                   %h_1_attn_c_proj_weight: tensor<8x8xf32> {titan.state = @transformer.h.1.attn.c_proj.weight},
                   %h_1_attn_c_proj_bias: tensor<8xf32> {titan.state = @transformer.h.1.attn.c_proj.bias},
                   %h_1_ln_2_weight: tensor<8xf32> {titan.state = @transformer.h.1.ln_2.weight},
                   %h_1_ln_2_bias: tensor<8xf32> {titan.state = @transformer.h.1.ln_2.bias},
                   %h_1_mlp_c_fc_weight: tensor<32x8xf32> {titan.state = @transformer.h.1.mlp.c_fc.weight},
                   %h_1_mlp_c_fc_bias: tensor<32xf32> {titan.state = @transformer.h.1.mlp.c_fc.bias},
                   %h_1_mlp_c_proj_weight: tensor<8x32xf32> {titan.state = @transformer.h.1.mlp.c_proj.weight},
                   %h_1_mlp_c_proj_bias: tensor<8xf32> {titan.state = @transformer.h.1.mlp.c_proj.bias},
                   %ln_f_weight: tensor<8xf32> {titan.state = @transformer.ln_f.weight},
                   %ln_f_bias: tensor<8xf32> {titan.state = @transformer.ln_f.bias},
                   %ids: tensor<2x6xi64> {titan.input = "input_ids"}) -> (tensor<2x6x19xf32> {titan.output = "logits"}) {
    %v1 = titan.embedding %wte_weight, %ids {path = ["transformer.wte"]} : (tensor<19x8xf32>, tensor<2x6xi64>) -> tensor<2x6x8xf32>
    %v2 = titan.iota 0 {path = ["transformer"]} : tensor<6xi64>
    %v3 = titan.embedding %wpe_weight, %v2 {path = ["transformer.wpe"]} : (tensor<6x8xf32>, tensor<6xi64>) -> tensor<6x8xf32>
    %v4 = titan.broadcast %v3 [1, 2] {path = ["transformer.wpe"]} : tensor<6x8xf32> to tensor<2x6x8xf32>
    %v5 = titan.add %v1, %v4 {path = ["transformer"]} : tensor<2x6x8xf32>
    %v6 = titan.dropout %v5 p 0.125 stream 1 {path = ["transformer.drop"]} : tensor<2x6x8xf32> to tensor<2x6x8xf32>
    %n7, %mean7, %rstd7 = titan.layer_norm %v6 scale %h_0_ln_1_weight bias %h_0_ln_1_bias over [2] epsilon 1.0e-5 {path = ["transformer.h.0.ln_1"]} : (tensor<2x6x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x6x8xf32>, tensor<2x6xf32>, tensor<2x6xf32>)
    %v8 = titan.contract %n7, %h_0_attn_c_attn_weight batch [] x [] contracting [2] x [1] {path = ["transformer.h.0.attn.c_attn"]} : (tensor<2x6x8xf32>, tensor<24x8xf32>) -> tensor<2x6x24xf32>
    %v9 = titan.broadcast %h_0_attn_c_attn_bias [2] {path = ["transformer.h.0.attn.c_attn"]} : tensor<24xf32> to tensor<2x6x24xf32>
    %v10 = titan.add %v8, %v9 {path = ["transformer.h.0.attn.c_attn"]} : tensor<2x6x24xf32>
    %v11 = titan.slice %v10 offsets [0, 0, 0] strides [1, 1, 1] {path = ["transformer.h.0.attn"]} : tensor<2x6x24xf32> to tensor<2x6x8xf32>
    %v12 = titan.reshape %v11 {path = ["transformer.h.0.attn"]} : tensor<2x6x8xf32> to tensor<2x6x2x4xf32>
    %v13 = titan.slice %v10 offsets [0, 0, 8] strides [1, 1, 1] {path = ["transformer.h.0.attn"]} : tensor<2x6x24xf32> to tensor<2x6x8xf32>
    %v14 = titan.reshape %v13 {path = ["transformer.h.0.attn"]} : tensor<2x6x8xf32> to tensor<2x6x2x4xf32>
    %v15 = titan.slice %v10 offsets [0, 0, 16] strides [1, 1, 1] {path = ["transformer.h.0.attn"]} : tensor<2x6x24xf32> to tensor<2x6x8xf32>
    %v16 = titan.reshape %v15 {path = ["transformer.h.0.attn"]} : tensor<2x6x8xf32> to tensor<2x6x2x4xf32>
    %a17, %lse17 = titan.attention %v12, %v14, %v16 scale 5.0e-01 causal {p = 1.250000e-01 : f64, stream = 10 : i64, path = ["transformer.h.0.attn"]} : (tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>) -> (tensor<2x6x2x4xf32>, tensor<2x2x6xf32>)
    %v18 = titan.reshape %a17 {path = ["transformer.h.0.attn"]} : tensor<2x6x2x4xf32> to tensor<2x6x8xf32>
    %v19 = titan.contract %v18, %h_0_attn_c_proj_weight batch [] x [] contracting [2] x [1] {path = ["transformer.h.0.attn.c_proj"]} : (tensor<2x6x8xf32>, tensor<8x8xf32>) -> tensor<2x6x8xf32>
    %v20 = titan.broadcast %h_0_attn_c_proj_bias [2] {path = ["transformer.h.0.attn.c_proj"]} : tensor<8xf32> to tensor<2x6x8xf32>
    %v21 = titan.add %v19, %v20 {path = ["transformer.h.0.attn.c_proj"]} : tensor<2x6x8xf32>
    %v22 = titan.dropout %v21 p 0.125 stream 11 {path = ["transformer.h.0.attn.resid_dropout"]} : tensor<2x6x8xf32> to tensor<2x6x8xf32>
    %v23 = titan.add %v6, %v22 {path = ["transformer.h.0"]} : tensor<2x6x8xf32>
    %n24, %mean24, %rstd24 = titan.layer_norm %v23 scale %h_0_ln_2_weight bias %h_0_ln_2_bias over [2] epsilon 1.0e-5 {path = ["transformer.h.0.ln_2"]} : (tensor<2x6x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x6x8xf32>, tensor<2x6xf32>, tensor<2x6xf32>)
    %v25 = titan.contract %n24, %h_0_mlp_c_fc_weight batch [] x [] contracting [2] x [1] {path = ["transformer.h.0.mlp.c_fc"]} : (tensor<2x6x8xf32>, tensor<32x8xf32>) -> tensor<2x6x32xf32>
    %v26 = titan.broadcast %h_0_mlp_c_fc_bias [2] {path = ["transformer.h.0.mlp.c_fc"]} : tensor<32xf32> to tensor<2x6x32xf32>
    %v27 = titan.add %v25, %v26 {path = ["transformer.h.0.mlp.c_fc"]} : tensor<2x6x32xf32>
    %v28 = titan.gelu tanh %v27 {path = ["transformer.h.0.mlp.act"]} : tensor<2x6x32xf32>
    %v29 = titan.contract %v28, %h_0_mlp_c_proj_weight batch [] x [] contracting [2] x [1] {path = ["transformer.h.0.mlp.c_proj"]} : (tensor<2x6x32xf32>, tensor<8x32xf32>) -> tensor<2x6x8xf32>
    %v30 = titan.broadcast %h_0_mlp_c_proj_bias [2] {path = ["transformer.h.0.mlp.c_proj"]} : tensor<8xf32> to tensor<2x6x8xf32>
    %v31 = titan.add %v29, %v30 {path = ["transformer.h.0.mlp.c_proj"]} : tensor<2x6x8xf32>
    %v32 = titan.dropout %v31 p 0.125 stream 12 {path = ["transformer.h.0.mlp.dropout"]} : tensor<2x6x8xf32> to tensor<2x6x8xf32>
    %v33 = titan.add %v23, %v32 {path = ["transformer.h.0"]} : tensor<2x6x8xf32>
    %n34, %mean34, %rstd34 = titan.layer_norm %v33 scale %h_1_ln_1_weight bias %h_1_ln_1_bias over [2] epsilon 1.0e-5 {path = ["transformer.h.1.ln_1"]} : (tensor<2x6x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x6x8xf32>, tensor<2x6xf32>, tensor<2x6xf32>)
    %v35 = titan.contract %n34, %h_1_attn_c_attn_weight batch [] x [] contracting [2] x [1] {path = ["transformer.h.1.attn.c_attn"]} : (tensor<2x6x8xf32>, tensor<24x8xf32>) -> tensor<2x6x24xf32>
    %v36 = titan.broadcast %h_1_attn_c_attn_bias [2] {path = ["transformer.h.1.attn.c_attn"]} : tensor<24xf32> to tensor<2x6x24xf32>
    %v37 = titan.add %v35, %v36 {path = ["transformer.h.1.attn.c_attn"]} : tensor<2x6x24xf32>
    %v38 = titan.slice %v37 offsets [0, 0, 0] strides [1, 1, 1] {path = ["transformer.h.1.attn"]} : tensor<2x6x24xf32> to tensor<2x6x8xf32>
    %v39 = titan.reshape %v38 {path = ["transformer.h.1.attn"]} : tensor<2x6x8xf32> to tensor<2x6x2x4xf32>
    %v40 = titan.slice %v37 offsets [0, 0, 8] strides [1, 1, 1] {path = ["transformer.h.1.attn"]} : tensor<2x6x24xf32> to tensor<2x6x8xf32>
    %v41 = titan.reshape %v40 {path = ["transformer.h.1.attn"]} : tensor<2x6x8xf32> to tensor<2x6x2x4xf32>
    %v42 = titan.slice %v37 offsets [0, 0, 16] strides [1, 1, 1] {path = ["transformer.h.1.attn"]} : tensor<2x6x24xf32> to tensor<2x6x8xf32>
    %v43 = titan.reshape %v42 {path = ["transformer.h.1.attn"]} : tensor<2x6x8xf32> to tensor<2x6x2x4xf32>
    %a44, %lse44 = titan.attention %v39, %v41, %v43 scale 5.0e-01 causal {p = 1.250000e-01 : f64, stream = 20 : i64, path = ["transformer.h.1.attn"]} : (tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>) -> (tensor<2x6x2x4xf32>, tensor<2x2x6xf32>)
    %v45 = titan.reshape %a44 {path = ["transformer.h.1.attn"]} : tensor<2x6x2x4xf32> to tensor<2x6x8xf32>
    %v46 = titan.contract %v45, %h_1_attn_c_proj_weight batch [] x [] contracting [2] x [1] {path = ["transformer.h.1.attn.c_proj"]} : (tensor<2x6x8xf32>, tensor<8x8xf32>) -> tensor<2x6x8xf32>
    %v47 = titan.broadcast %h_1_attn_c_proj_bias [2] {path = ["transformer.h.1.attn.c_proj"]} : tensor<8xf32> to tensor<2x6x8xf32>
    %v48 = titan.add %v46, %v47 {path = ["transformer.h.1.attn.c_proj"]} : tensor<2x6x8xf32>
    %v49 = titan.dropout %v48 p 0.125 stream 21 {path = ["transformer.h.1.attn.resid_dropout"]} : tensor<2x6x8xf32> to tensor<2x6x8xf32>
    %v50 = titan.add %v33, %v49 {path = ["transformer.h.1"]} : tensor<2x6x8xf32>
    %n51, %mean51, %rstd51 = titan.layer_norm %v50 scale %h_1_ln_2_weight bias %h_1_ln_2_bias over [2] epsilon 1.0e-5 {path = ["transformer.h.1.ln_2"]} : (tensor<2x6x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x6x8xf32>, tensor<2x6xf32>, tensor<2x6xf32>)
    %v52 = titan.contract %n51, %h_1_mlp_c_fc_weight batch [] x [] contracting [2] x [1] {path = ["transformer.h.1.mlp.c_fc"]} : (tensor<2x6x8xf32>, tensor<32x8xf32>) -> tensor<2x6x32xf32>
    %v53 = titan.broadcast %h_1_mlp_c_fc_bias [2] {path = ["transformer.h.1.mlp.c_fc"]} : tensor<32xf32> to tensor<2x6x32xf32>
    %v54 = titan.add %v52, %v53 {path = ["transformer.h.1.mlp.c_fc"]} : tensor<2x6x32xf32>
    %v55 = titan.gelu tanh %v54 {path = ["transformer.h.1.mlp.act"]} : tensor<2x6x32xf32>
    %v56 = titan.contract %v55, %h_1_mlp_c_proj_weight batch [] x [] contracting [2] x [1] {path = ["transformer.h.1.mlp.c_proj"]} : (tensor<2x6x32xf32>, tensor<8x32xf32>) -> tensor<2x6x8xf32>
    %v57 = titan.broadcast %h_1_mlp_c_proj_bias [2] {path = ["transformer.h.1.mlp.c_proj"]} : tensor<8xf32> to tensor<2x6x8xf32>
    %v58 = titan.add %v56, %v57 {path = ["transformer.h.1.mlp.c_proj"]} : tensor<2x6x8xf32>
    %v59 = titan.dropout %v58 p 0.125 stream 22 {path = ["transformer.h.1.mlp.dropout"]} : tensor<2x6x8xf32> to tensor<2x6x8xf32>
    %v60 = titan.add %v50, %v59 {path = ["transformer.h.1"]} : tensor<2x6x8xf32>
    %n61, %mean61, %rstd61 = titan.layer_norm %v60 scale %ln_f_weight bias %ln_f_bias over [2] epsilon 1.0e-5 {path = ["transformer.ln_f"]} : (tensor<2x6x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x6x8xf32>, tensor<2x6xf32>, tensor<2x6xf32>)
    %v62 = titan.contract %n61, %wte_weight batch [] x [] contracting [2] x [1] {path = ["lm_head"]} : (tensor<2x6x8xf32>, tensor<19x8xf32>) -> tensor<2x6x19xf32>
    return %v62 : tensor<2x6x19xf32>
  }
}

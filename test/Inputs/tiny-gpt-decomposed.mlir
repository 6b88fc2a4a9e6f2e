// tiny-gpt.mlir with attention written out: products, scale, causal mask, softmax, dropout of the same stream.
// The batch is the only extent of 2 that a tensor begins with: a test rewrites `tensor<2x` for another batch.
// No test of its own: read by the tests of every layer.
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
    %v17 = titan.contract %v12, %v14 batch [0, 2] x [0, 2] contracting [3] x [3] {path = ["transformer.h.0.attn"]} : (tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>) -> tensor<2x2x6x6xf32>
    %v18 = titan.constant dense<5.0e-01> : tensor<2x2x6x6xf32> {path = ["transformer.h.0.attn"]}
    %v19 = titan.mul %v17, %v18 {path = ["transformer.h.0.attn"]} : tensor<2x2x6x6xf32>
    %v20 = titan.iota 2 {path = ["transformer.h.0.attn"]} : tensor<2x2x6x6xi64>
    %v21 = titan.iota 3 {path = ["transformer.h.0.attn"]} : tensor<2x2x6x6xi64>
    %v22 = titan.compare le %v21, %v20 {path = ["transformer.h.0.attn"]} : tensor<2x2x6x6xi64>
    %v23 = titan.constant dense<0xFF800000> : tensor<2x2x6x6xf32> {path = ["transformer.h.0.attn"]}
    %v24 = titan.select %v22, %v19, %v23 {path = ["transformer.h.0.attn"]} : tensor<2x2x6x6xi1>, tensor<2x2x6x6xf32>
    %v25 = titan.softmax %v24 dim 3 {path = ["transformer.h.0.attn"]} : tensor<2x2x6x6xf32>
    %v26 = titan.dropout %v25 p 0.125 stream 10 {path = ["transformer.h.0.attn.attn_dropout"]} : tensor<2x2x6x6xf32> to tensor<2x2x6x6xf32>
    %v27 = titan.contract %v26, %v16 batch [0, 1] x [0, 2] contracting [3] x [1] {path = ["transformer.h.0.attn"]} : (tensor<2x2x6x6xf32>, tensor<2x6x2x4xf32>) -> tensor<2x2x6x4xf32>
    %v28 = titan.transpose %v27 [0, 2, 1, 3] {path = ["transformer.h.0.attn"]} : tensor<2x2x6x4xf32> to tensor<2x6x2x4xf32>
    %v29 = titan.reshape %v28 {path = ["transformer.h.0.attn"]} : tensor<2x6x2x4xf32> to tensor<2x6x8xf32>
    %v30 = titan.contract %v29, %h_0_attn_c_proj_weight batch [] x [] contracting [2] x [1] {path = ["transformer.h.0.attn.c_proj"]} : (tensor<2x6x8xf32>, tensor<8x8xf32>) -> tensor<2x6x8xf32>
    %v31 = titan.broadcast %h_0_attn_c_proj_bias [2] {path = ["transformer.h.0.attn.c_proj"]} : tensor<8xf32> to tensor<2x6x8xf32>
    %v32 = titan.add %v30, %v31 {path = ["transformer.h.0.attn.c_proj"]} : tensor<2x6x8xf32>
    %v33 = titan.dropout %v32 p 0.125 stream 11 {path = ["transformer.h.0.attn.resid_dropout"]} : tensor<2x6x8xf32> to tensor<2x6x8xf32>
    %v34 = titan.add %v6, %v33 {path = ["transformer.h.0"]} : tensor<2x6x8xf32>
    %n35, %mean35, %rstd35 = titan.layer_norm %v34 scale %h_0_ln_2_weight bias %h_0_ln_2_bias over [2] epsilon 1.0e-5 {path = ["transformer.h.0.ln_2"]} : (tensor<2x6x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x6x8xf32>, tensor<2x6xf32>, tensor<2x6xf32>)
    %v36 = titan.contract %n35, %h_0_mlp_c_fc_weight batch [] x [] contracting [2] x [1] {path = ["transformer.h.0.mlp.c_fc"]} : (tensor<2x6x8xf32>, tensor<32x8xf32>) -> tensor<2x6x32xf32>
    %v37 = titan.broadcast %h_0_mlp_c_fc_bias [2] {path = ["transformer.h.0.mlp.c_fc"]} : tensor<32xf32> to tensor<2x6x32xf32>
    %v38 = titan.add %v36, %v37 {path = ["transformer.h.0.mlp.c_fc"]} : tensor<2x6x32xf32>
    %v39 = titan.gelu tanh %v38 {path = ["transformer.h.0.mlp.act"]} : tensor<2x6x32xf32>
    %v40 = titan.contract %v39, %h_0_mlp_c_proj_weight batch [] x [] contracting [2] x [1] {path = ["transformer.h.0.mlp.c_proj"]} : (tensor<2x6x32xf32>, tensor<8x32xf32>) -> tensor<2x6x8xf32>
    %v41 = titan.broadcast %h_0_mlp_c_proj_bias [2] {path = ["transformer.h.0.mlp.c_proj"]} : tensor<8xf32> to tensor<2x6x8xf32>
    %v42 = titan.add %v40, %v41 {path = ["transformer.h.0.mlp.c_proj"]} : tensor<2x6x8xf32>
    %v43 = titan.dropout %v42 p 0.125 stream 12 {path = ["transformer.h.0.mlp.dropout"]} : tensor<2x6x8xf32> to tensor<2x6x8xf32>
    %v44 = titan.add %v34, %v43 {path = ["transformer.h.0"]} : tensor<2x6x8xf32>
    %n45, %mean45, %rstd45 = titan.layer_norm %v44 scale %h_1_ln_1_weight bias %h_1_ln_1_bias over [2] epsilon 1.0e-5 {path = ["transformer.h.1.ln_1"]} : (tensor<2x6x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x6x8xf32>, tensor<2x6xf32>, tensor<2x6xf32>)
    %v46 = titan.contract %n45, %h_1_attn_c_attn_weight batch [] x [] contracting [2] x [1] {path = ["transformer.h.1.attn.c_attn"]} : (tensor<2x6x8xf32>, tensor<24x8xf32>) -> tensor<2x6x24xf32>
    %v47 = titan.broadcast %h_1_attn_c_attn_bias [2] {path = ["transformer.h.1.attn.c_attn"]} : tensor<24xf32> to tensor<2x6x24xf32>
    %v48 = titan.add %v46, %v47 {path = ["transformer.h.1.attn.c_attn"]} : tensor<2x6x24xf32>
    %v49 = titan.slice %v48 offsets [0, 0, 0] strides [1, 1, 1] {path = ["transformer.h.1.attn"]} : tensor<2x6x24xf32> to tensor<2x6x8xf32>
    %v50 = titan.reshape %v49 {path = ["transformer.h.1.attn"]} : tensor<2x6x8xf32> to tensor<2x6x2x4xf32>
    %v51 = titan.slice %v48 offsets [0, 0, 8] strides [1, 1, 1] {path = ["transformer.h.1.attn"]} : tensor<2x6x24xf32> to tensor<2x6x8xf32>
    %v52 = titan.reshape %v51 {path = ["transformer.h.1.attn"]} : tensor<2x6x8xf32> to tensor<2x6x2x4xf32>
    %v53 = titan.slice %v48 offsets [0, 0, 16] strides [1, 1, 1] {path = ["transformer.h.1.attn"]} : tensor<2x6x24xf32> to tensor<2x6x8xf32>
    %v54 = titan.reshape %v53 {path = ["transformer.h.1.attn"]} : tensor<2x6x8xf32> to tensor<2x6x2x4xf32>
    %v55 = titan.contract %v50, %v52 batch [0, 2] x [0, 2] contracting [3] x [3] {path = ["transformer.h.1.attn"]} : (tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>) -> tensor<2x2x6x6xf32>
    %v56 = titan.constant dense<5.0e-01> : tensor<2x2x6x6xf32> {path = ["transformer.h.1.attn"]}
    %v57 = titan.mul %v55, %v56 {path = ["transformer.h.1.attn"]} : tensor<2x2x6x6xf32>
    %v58 = titan.iota 2 {path = ["transformer.h.1.attn"]} : tensor<2x2x6x6xi64>
    %v59 = titan.iota 3 {path = ["transformer.h.1.attn"]} : tensor<2x2x6x6xi64>
    %v60 = titan.compare le %v59, %v58 {path = ["transformer.h.1.attn"]} : tensor<2x2x6x6xi64>
    %v61 = titan.constant dense<0xFF800000> : tensor<2x2x6x6xf32> {path = ["transformer.h.1.attn"]}
    %v62 = titan.select %v60, %v57, %v61 {path = ["transformer.h.1.attn"]} : tensor<2x2x6x6xi1>, tensor<2x2x6x6xf32>
    %v63 = titan.softmax %v62 dim 3 {path = ["transformer.h.1.attn"]} : tensor<2x2x6x6xf32>
    %v64 = titan.dropout %v63 p 0.125 stream 20 {path = ["transformer.h.1.attn.attn_dropout"]} : tensor<2x2x6x6xf32> to tensor<2x2x6x6xf32>
    %v65 = titan.contract %v64, %v54 batch [0, 1] x [0, 2] contracting [3] x [1] {path = ["transformer.h.1.attn"]} : (tensor<2x2x6x6xf32>, tensor<2x6x2x4xf32>) -> tensor<2x2x6x4xf32>
    %v66 = titan.transpose %v65 [0, 2, 1, 3] {path = ["transformer.h.1.attn"]} : tensor<2x2x6x4xf32> to tensor<2x6x2x4xf32>
    %v67 = titan.reshape %v66 {path = ["transformer.h.1.attn"]} : tensor<2x6x2x4xf32> to tensor<2x6x8xf32>
    %v68 = titan.contract %v67, %h_1_attn_c_proj_weight batch [] x [] contracting [2] x [1] {path = ["transformer.h.1.attn.c_proj"]} : (tensor<2x6x8xf32>, tensor<8x8xf32>) -> tensor<2x6x8xf32>
    %v69 = titan.broadcast %h_1_attn_c_proj_bias [2] {path = ["transformer.h.1.attn.c_proj"]} : tensor<8xf32> to tensor<2x6x8xf32>
    %v70 = titan.add %v68, %v69 {path = ["transformer.h.1.attn.c_proj"]} : tensor<2x6x8xf32>
    %v71 = titan.dropout %v70 p 0.125 stream 21 {path = ["transformer.h.1.attn.resid_dropout"]} : tensor<2x6x8xf32> to tensor<2x6x8xf32>
    %v72 = titan.add %v44, %v71 {path = ["transformer.h.1"]} : tensor<2x6x8xf32>
    %n73, %mean73, %rstd73 = titan.layer_norm %v72 scale %h_1_ln_2_weight bias %h_1_ln_2_bias over [2] epsilon 1.0e-5 {path = ["transformer.h.1.ln_2"]} : (tensor<2x6x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x6x8xf32>, tensor<2x6xf32>, tensor<2x6xf32>)
    %v74 = titan.contract %n73, %h_1_mlp_c_fc_weight batch [] x [] contracting [2] x [1] {path = ["transformer.h.1.mlp.c_fc"]} : (tensor<2x6x8xf32>, tensor<32x8xf32>) -> tensor<2x6x32xf32>
    %v75 = titan.broadcast %h_1_mlp_c_fc_bias [2] {path = ["transformer.h.1.mlp.c_fc"]} : tensor<32xf32> to tensor<2x6x32xf32>
    %v76 = titan.add %v74, %v75 {path = ["transformer.h.1.mlp.c_fc"]} : tensor<2x6x32xf32>
    %v77 = titan.gelu tanh %v76 {path = ["transformer.h.1.mlp.act"]} : tensor<2x6x32xf32>
    %v78 = titan.contract %v77, %h_1_mlp_c_proj_weight batch [] x [] contracting [2] x [1] {path = ["transformer.h.1.mlp.c_proj"]} : (tensor<2x6x32xf32>, tensor<8x32xf32>) -> tensor<2x6x8xf32>
    %v79 = titan.broadcast %h_1_mlp_c_proj_bias [2] {path = ["transformer.h.1.mlp.c_proj"]} : tensor<8xf32> to tensor<2x6x8xf32>
    %v80 = titan.add %v78, %v79 {path = ["transformer.h.1.mlp.c_proj"]} : tensor<2x6x8xf32>
    %v81 = titan.dropout %v80 p 0.125 stream 22 {path = ["transformer.h.1.mlp.dropout"]} : tensor<2x6x8xf32> to tensor<2x6x8xf32>
    %v82 = titan.add %v72, %v81 {path = ["transformer.h.1"]} : tensor<2x6x8xf32>
    %n83, %mean83, %rstd83 = titan.layer_norm %v82 scale %ln_f_weight bias %ln_f_bias over [2] epsilon 1.0e-5 {path = ["transformer.ln_f"]} : (tensor<2x6x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x6x8xf32>, tensor<2x6xf32>, tensor<2x6xf32>)
    %v84 = titan.contract %n83, %wte_weight batch [] x [] contracting [2] x [1] {path = ["lm_head"]} : (tensor<2x6x8xf32>, tensor<19x8xf32>) -> tensor<2x6x19xf32>
    return %v84 : tensor<2x6x19xf32>
  }
}

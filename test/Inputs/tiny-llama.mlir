// A Llama of two layers: 4 query heads over 2 key heads of width 2, rotary positions, RMSNorm, SwiGLU, untied head.
// The batch is the only extent of 2 that a tensor begins with: a test rewrites `tensor<2x` for another batch.
// No test of its own: read by the tests of every layer.
module attributes {titan.recipe = {batch = {micro = 2 : i64, global = 4 : i64}}} {
  titan.state @model.embed_tokens.weight : tensor<19x8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.02 : f64>}
  titan.state @model.layers.0.input_layernorm.weight : tensor<8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 1.0 : f64, 0.0 : f64>}
  titan.state @model.layers.0.self_attn.q_proj.weight : tensor<8x8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.02 : f64>}
  titan.state @model.layers.0.self_attn.k_proj.weight : tensor<4x8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.02 : f64>}
  titan.state @model.layers.0.self_attn.v_proj.weight : tensor<4x8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.02 : f64>}
  titan.state @model.layers.0.self_attn.o_proj.weight : tensor<8x8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.02 : f64>}
  titan.state @model.layers.0.post_attention_layernorm.weight : tensor<8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 1.0 : f64, 0.0 : f64>}
  titan.state @model.layers.0.mlp.gate_proj.weight : tensor<12x8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.02 : f64>}
  titan.state @model.layers.0.mlp.up_proj.weight : tensor<12x8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.02 : f64>}
  titan.state @model.layers.0.mlp.down_proj.weight : tensor<8x12xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.02 : f64>}
  titan.state @model.layers.1.input_layernorm.weight : tensor<8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 1.0 : f64, 0.0 : f64>}
  titan.state @model.layers.1.self_attn.q_proj.weight : tensor<8x8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.02 : f64>}
  titan.state @model.layers.1.self_attn.k_proj.weight : tensor<4x8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.02 : f64>}
  titan.state @model.layers.1.self_attn.v_proj.weight : tensor<4x8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.02 : f64>}
  titan.state @model.layers.1.self_attn.o_proj.weight : tensor<8x8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.02 : f64>}
  titan.state @model.layers.1.post_attention_layernorm.weight : tensor<8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 1.0 : f64, 0.0 : f64>}
  titan.state @model.layers.1.mlp.gate_proj.weight : tensor<12x8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.02 : f64>}
  titan.state @model.layers.1.mlp.up_proj.weight : tensor<12x8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.02 : f64>}
  titan.state @model.layers.1.mlp.down_proj.weight : tensor<8x12xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.02 : f64>}
  titan.state @model.norm.weight : tensor<8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 1.0 : f64, 0.0 : f64>}
  titan.state @lm_head.weight : tensor<19x8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.02 : f64>}
  func.func @model(%model_embed_tokens_weight: tensor<19x8xf32> {titan.state = @model.embed_tokens.weight},
                   %model_layers_0_input_layernorm_weight: tensor<8xf32> {titan.state = @model.layers.0.input_layernorm.weight},
                   %model_layers_0_self_attn_q_proj_weight: tensor<8x8xf32> {titan.state = @model.layers.0.self_attn.q_proj.weight},
                   %model_layers_0_self_attn_k_proj_weight: tensor<4x8xf32> {titan.state = @model.layers.0.self_attn.k_proj.weight},
                   %model_layers_0_self_attn_v_proj_weight: tensor<4x8xf32> {titan.state = @model.layers.0.self_attn.v_proj.weight},
                   %model_layers_0_self_attn_o_proj_weight: tensor<8x8xf32> {titan.state = @model.layers.0.self_attn.o_proj.weight},
                   %model_layers_0_post_attention_layernorm_weight: tensor<8xf32> {titan.state = @model.layers.0.post_attention_layernorm.weight},
                   %model_layers_0_mlp_gate_proj_weight: tensor<12x8xf32> {titan.state = @model.layers.0.mlp.gate_proj.weight},
                   %model_layers_0_mlp_up_proj_weight: tensor<12x8xf32> {titan.state = @model.layers.0.mlp.up_proj.weight},
                   %model_layers_0_mlp_down_proj_weight: tensor<8x12xf32> {titan.state = @model.layers.0.mlp.down_proj.weight},
                   %model_layers_1_input_layernorm_weight: tensor<8xf32> {titan.state = @model.layers.1.input_layernorm.weight},
                   %model_layers_1_self_attn_q_proj_weight: tensor<8x8xf32> {titan.state = @model.layers.1.self_attn.q_proj.weight},
                   %model_layers_1_self_attn_k_proj_weight: tensor<4x8xf32> {titan.state = @model.layers.1.self_attn.k_proj.weight},
                   %model_layers_1_self_attn_v_proj_weight: tensor<4x8xf32> {titan.state = @model.layers.1.self_attn.v_proj.weight},
                   %model_layers_1_self_attn_o_proj_weight: tensor<8x8xf32> {titan.state = @model.layers.1.self_attn.o_proj.weight},
                   %model_layers_1_post_attention_layernorm_weight: tensor<8xf32> {titan.state = @model.layers.1.post_attention_layernorm.weight},
                   %model_layers_1_mlp_gate_proj_weight: tensor<12x8xf32> {titan.state = @model.layers.1.mlp.gate_proj.weight},
                   %model_layers_1_mlp_up_proj_weight: tensor<12x8xf32> {titan.state = @model.layers.1.mlp.up_proj.weight},
                   %model_layers_1_mlp_down_proj_weight: tensor<8x12xf32> {titan.state = @model.layers.1.mlp.down_proj.weight},
                   %model_norm_weight: tensor<8xf32> {titan.state = @model.norm.weight},
                   %lm_head_weight: tensor<19x8xf32> {titan.state = @lm_head.weight},
                   %ids: tensor<2x6xi64> {titan.input = "input_ids"}) -> (tensor<2x6x19xf32> {titan.output = "logits"}) {
    %v1 = titan.embedding %model_embed_tokens_weight, %ids {path = ["model.embed_tokens"]} : (tensor<19x8xf32>, tensor<2x6xi64>) -> tensor<2x6x8xf32>
    %v2 = titan.constant dense<[[1.000000000e+00], [5.403023059e-01], [-4.161468365e-01], [-9.899924966e-01], [-6.536436209e-01], [2.836621855e-01]]> : tensor<6x1xf32> {path = ["model.rotary_emb"]}
    %v3 = titan.constant dense<[[0.000000000e+00], [8.414709848e-01], [9.092974268e-01], [1.411200081e-01], [-7.568024953e-01], [-9.589242747e-01]]> : tensor<6x1xf32> {path = ["model.rotary_emb"]}
    %n4, %rstd4 = titan.rms_norm %v1 scale %model_layers_0_input_layernorm_weight axis 2 epsilon 1.0e-5 {path = ["model.layers.0.input_layernorm"]} : (tensor<2x6x8xf32>, tensor<8xf32>) -> (tensor<2x6x8xf32>, tensor<2x6xf32>)
    %v5 = titan.contract %n4, %model_layers_0_self_attn_q_proj_weight batch [] x [] contracting [2] x [1] {path = ["model.layers.0.self_attn.q_proj"]} : (tensor<2x6x8xf32>, tensor<8x8xf32>) -> tensor<2x6x8xf32>
    %v6 = titan.reshape %v5 {path = ["model.layers.0.self_attn"]} : tensor<2x6x8xf32> to tensor<2x6x4x2xf32>
    %v7 = titan.contract %n4, %model_layers_0_self_attn_k_proj_weight batch [] x [] contracting [2] x [1] {path = ["model.layers.0.self_attn.k_proj"]} : (tensor<2x6x8xf32>, tensor<4x8xf32>) -> tensor<2x6x4xf32>
    %v8 = titan.reshape %v7 {path = ["model.layers.0.self_attn"]} : tensor<2x6x4xf32> to tensor<2x6x2x2xf32>
    %v9 = titan.contract %n4, %model_layers_0_self_attn_v_proj_weight batch [] x [] contracting [2] x [1] {path = ["model.layers.0.self_attn.v_proj"]} : (tensor<2x6x8xf32>, tensor<4x8xf32>) -> tensor<2x6x4xf32>
    %v10 = titan.reshape %v9 {path = ["model.layers.0.self_attn"]} : tensor<2x6x4xf32> to tensor<2x6x2x2xf32>
    %v11 = titan.rotary %v6, %v2, %v3 {path = ["model.layers.0.self_attn"]} : (tensor<2x6x4x2xf32>, tensor<6x1xf32>, tensor<6x1xf32>) -> tensor<2x6x4x2xf32>
    %v12 = titan.rotary %v8, %v2, %v3 {path = ["model.layers.0.self_attn"]} : (tensor<2x6x2x2xf32>, tensor<6x1xf32>, tensor<6x1xf32>) -> tensor<2x6x2x2xf32>
    %a13, %lse13 = titan.attention %v11, %v12, %v10 scale 7.5e-01 causal {path = ["model.layers.0.self_attn"]} : (tensor<2x6x4x2xf32>, tensor<2x6x2x2xf32>, tensor<2x6x2x2xf32>) -> (tensor<2x6x4x2xf32>, tensor<2x4x6xf32>)
    %v14 = titan.reshape %a13 {path = ["model.layers.0.self_attn"]} : tensor<2x6x4x2xf32> to tensor<2x6x8xf32>
    %v15 = titan.contract %v14, %model_layers_0_self_attn_o_proj_weight batch [] x [] contracting [2] x [1] {path = ["model.layers.0.self_attn.o_proj"]} : (tensor<2x6x8xf32>, tensor<8x8xf32>) -> tensor<2x6x8xf32>
    %v16 = titan.add %v1, %v15 {path = ["model.layers.0"]} : tensor<2x6x8xf32>
    %n17, %rstd17 = titan.rms_norm %v16 scale %model_layers_0_post_attention_layernorm_weight axis 2 epsilon 1.0e-5 {path = ["model.layers.0.post_attention_layernorm"]} : (tensor<2x6x8xf32>, tensor<8xf32>) -> (tensor<2x6x8xf32>, tensor<2x6xf32>)
    %v18 = titan.contract %n17, %model_layers_0_mlp_gate_proj_weight batch [] x [] contracting [2] x [1] {path = ["model.layers.0.mlp.gate_proj"]} : (tensor<2x6x8xf32>, tensor<12x8xf32>) -> tensor<2x6x12xf32>
    %v19 = titan.silu %v18 {path = ["model.layers.0.mlp.act_fn"]} : tensor<2x6x12xf32>
    %v20 = titan.contract %n17, %model_layers_0_mlp_up_proj_weight batch [] x [] contracting [2] x [1] {path = ["model.layers.0.mlp.up_proj"]} : (tensor<2x6x8xf32>, tensor<12x8xf32>) -> tensor<2x6x12xf32>
    %v21 = titan.mul %v19, %v20 {path = ["model.layers.0.mlp"]} : tensor<2x6x12xf32>
    %v22 = titan.contract %v21, %model_layers_0_mlp_down_proj_weight batch [] x [] contracting [2] x [1] {path = ["model.layers.0.mlp.down_proj"]} : (tensor<2x6x12xf32>, tensor<8x12xf32>) -> tensor<2x6x8xf32>
    %v23 = titan.add %v16, %v22 {path = ["model.layers.0"]} : tensor<2x6x8xf32>
    %n24, %rstd24 = titan.rms_norm %v23 scale %model_layers_1_input_layernorm_weight axis 2 epsilon 1.0e-5 {path = ["model.layers.1.input_layernorm"]} : (tensor<2x6x8xf32>, tensor<8xf32>) -> (tensor<2x6x8xf32>, tensor<2x6xf32>)
    %v25 = titan.contract %n24, %model_layers_1_self_attn_q_proj_weight batch [] x [] contracting [2] x [1] {path = ["model.layers.1.self_attn.q_proj"]} : (tensor<2x6x8xf32>, tensor<8x8xf32>) -> tensor<2x6x8xf32>
    %v26 = titan.reshape %v25 {path = ["model.layers.1.self_attn"]} : tensor<2x6x8xf32> to tensor<2x6x4x2xf32>
    %v27 = titan.contract %n24, %model_layers_1_self_attn_k_proj_weight batch [] x [] contracting [2] x [1] {path = ["model.layers.1.self_attn.k_proj"]} : (tensor<2x6x8xf32>, tensor<4x8xf32>) -> tensor<2x6x4xf32>
    %v28 = titan.reshape %v27 {path = ["model.layers.1.self_attn"]} : tensor<2x6x4xf32> to tensor<2x6x2x2xf32>
    %v29 = titan.contract %n24, %model_layers_1_self_attn_v_proj_weight batch [] x [] contracting [2] x [1] {path = ["model.layers.1.self_attn.v_proj"]} : (tensor<2x6x8xf32>, tensor<4x8xf32>) -> tensor<2x6x4xf32>
    %v30 = titan.reshape %v29 {path = ["model.layers.1.self_attn"]} : tensor<2x6x4xf32> to tensor<2x6x2x2xf32>
    %v31 = titan.rotary %v26, %v2, %v3 {path = ["model.layers.1.self_attn"]} : (tensor<2x6x4x2xf32>, tensor<6x1xf32>, tensor<6x1xf32>) -> tensor<2x6x4x2xf32>
    %v32 = titan.rotary %v28, %v2, %v3 {path = ["model.layers.1.self_attn"]} : (tensor<2x6x2x2xf32>, tensor<6x1xf32>, tensor<6x1xf32>) -> tensor<2x6x2x2xf32>
    %a33, %lse33 = titan.attention %v31, %v32, %v30 scale 7.5e-01 causal {path = ["model.layers.1.self_attn"]} : (tensor<2x6x4x2xf32>, tensor<2x6x2x2xf32>, tensor<2x6x2x2xf32>) -> (tensor<2x6x4x2xf32>, tensor<2x4x6xf32>)
    %v34 = titan.reshape %a33 {path = ["model.layers.1.self_attn"]} : tensor<2x6x4x2xf32> to tensor<2x6x8xf32>
    %v35 = titan.contract %v34, %model_layers_1_self_attn_o_proj_weight batch [] x [] contracting [2] x [1] {path = ["model.layers.1.self_attn.o_proj"]} : (tensor<2x6x8xf32>, tensor<8x8xf32>) -> tensor<2x6x8xf32>
    %v36 = titan.add %v23, %v35 {path = ["model.layers.1"]} : tensor<2x6x8xf32>
    %n37, %rstd37 = titan.rms_norm %v36 scale %model_layers_1_post_attention_layernorm_weight axis 2 epsilon 1.0e-5 {path = ["model.layers.1.post_attention_layernorm"]} : (tensor<2x6x8xf32>, tensor<8xf32>) -> (tensor<2x6x8xf32>, tensor<2x6xf32>)
    %v38 = titan.contract %n37, %model_layers_1_mlp_gate_proj_weight batch [] x [] contracting [2] x [1] {path = ["model.layers.1.mlp.gate_proj"]} : (tensor<2x6x8xf32>, tensor<12x8xf32>) -> tensor<2x6x12xf32>
    %v39 = titan.silu %v38 {path = ["model.layers.1.mlp.act_fn"]} : tensor<2x6x12xf32>
    %v40 = titan.contract %n37, %model_layers_1_mlp_up_proj_weight batch [] x [] contracting [2] x [1] {path = ["model.layers.1.mlp.up_proj"]} : (tensor<2x6x8xf32>, tensor<12x8xf32>) -> tensor<2x6x12xf32>
    %v41 = titan.mul %v39, %v40 {path = ["model.layers.1.mlp"]} : tensor<2x6x12xf32>
    %v42 = titan.contract %v41, %model_layers_1_mlp_down_proj_weight batch [] x [] contracting [2] x [1] {path = ["model.layers.1.mlp.down_proj"]} : (tensor<2x6x12xf32>, tensor<8x12xf32>) -> tensor<2x6x8xf32>
    %v43 = titan.add %v36, %v42 {path = ["model.layers.1"]} : tensor<2x6x8xf32>
    %n44, %rstd44 = titan.rms_norm %v43 scale %model_norm_weight axis 2 epsilon 1.0e-5 {path = ["model.norm"]} : (tensor<2x6x8xf32>, tensor<8xf32>) -> (tensor<2x6x8xf32>, tensor<2x6xf32>)
    %v45 = titan.contract %n44, %lm_head_weight batch [] x [] contracting [2] x [1] {path = ["lm_head"]} : (tensor<2x6x8xf32>, tensor<19x8xf32>) -> tensor<2x6x19xf32>
    return %v45 : tensor<2x6x19xf32>
  }
}

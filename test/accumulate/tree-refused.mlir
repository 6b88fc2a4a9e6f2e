// RUN: titan-opt %s --titan-accumulate-fix-order --verify-diagnostics

// expected-error @+1 {{mesh.reduce = "tree" is not available in this version}}
module attributes {titan.recipe = {mesh = {reduce = "tree"}}} {
}

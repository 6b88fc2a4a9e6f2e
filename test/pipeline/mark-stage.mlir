// A module goes through each stage once and in order.
// RUN: titan-opt %s --titan-mark-stage=stage=differentiate | FileCheck %s
// RUN: not titan-opt %s --titan-mark-stage=stage=lower 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: not titan-opt %s --titan-mark-stage=stage=nowhere 2>&1 | FileCheck %s --check-prefix=NAME

// CHECK: titan.stage = "differentiate"
// ORDER: the module is at stage 'import' and cannot go through 'lower'
// NAME: titan-mark-stage: 'nowhere' is no stage
module {
}

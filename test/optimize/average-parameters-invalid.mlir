// What titan-optimize-average-parameters refuses.
// RUN: not titan-opt %s --titan-optimize-average-parameters=profiles=../x:0.5 2>&1 | FileCheck %s --check-prefix=BAD0
// RUN: not titan-opt %s --titan-optimize-average-parameters=profiles=slow:1.5 2>&1 | FileCheck %s --check-prefix=BAD1
// RUN: not titan-opt %s --titan-optimize-average-parameters=profiles=slow:nan 2>&1 | FileCheck %s --check-prefix=BAD2
// RUN: not titan-opt %s --titan-optimize-average-parameters=profiles=slow:0.5:cold 2>&1 | FileCheck %s --check-prefix=BAD3
// RUN: not titan-opt %s --titan-optimize-average-parameters=profiles=slow:0.5,slow:0.9 2>&1 | FileCheck %s --check-prefix=BAD4
// RUN: not titan-opt %s --titan-optimize-average-parameters=profiles=slow:0.5 2>&1 | FileCheck %s --check-prefix=BAD5

// BAD0: error: profile '../x' is not letters, digits and '_'
// BAD1: error: profile 'slow' has decay 1.5, which is not in [0, 1)
// BAD2: error: profile 'slow' has decay nan, which is not in [0, 1)
// BAD3: error: profile 'slow:0.5:cold' should be NAME:DECAY or NAME:DECAY:warmup
// BAD4: error: profile 'slow' is there twice
// BAD5: error: the module has no @step to average: run insert-update first
module {
}

// Every instruction that computes lane by lane, against values found by other means than its own.
#include "runtime/device/cuda/testing/ptx/Opcodes.h"
#include "runtime/device/cuda/testing/ptx/TestCase.h"

#include <bit>
#include <cmath>
#include <set>
#include <sstream>

namespace titan::ptx {
namespace {

// One line a case; b16, b32, b64 are hexadecimal bits.
const char* const integerCases = R"(
add.TYPE: B 5, B 7 = B c
sub.TYPE: B c, B 7 = B 5
mul.lo.TYPE: B 6, B 7 = B 2a
mul.hi.TYPE: B 6, B 7 = B 0
mad.lo.TYPE: B 6, B 7, B 3 = B 2d
mad.hi.TYPE: B 6, B 7, B 3 = B 3
min.TYPE: B 6, B 7 = B 6
max.TYPE: B 6, B 7 = B 7
div.TYPE: B 2b, B 7 = B 6
rem.TYPE: B 2b, B 7 = B 1
)";

const char* const cases = R"(
add.s32: b32 7fffffff, b32 1 = b32 80000000
add.u16: b16 ffff, b16 2 = b16 1
add.s64: b64 ffffffffffffffff, b64 1 = b64 0
sub.s16: b16 8000, b16 1 = b16 7fff
sub.u64: b64 0, b64 1 = b64 ffffffffffffffff
mul.lo.s32: b32 10000, b32 10000 = b32 0
mul.lo.s16: b16 ffff, b16 7fff = b16 8001
mul.hi.s32: b32 ffffffff, b32 5 = b32 ffffffff
mul.hi.u32: b32 ffffffff, b32 5 = b32 4
mul.hi.u32: b32 80000000, imm d2511f53 = b32 69288fa9
mul.hi.s64: b64 ffffffffffffffff, b64 5 = b64 ffffffffffffffff
mul.hi.u64: b64 ffffffffffffffff, b64 5 = b64 4
mul.hi.s16: b16 ffff, b16 5 = b16 ffff
mul.hi.u16: b16 ffff, b16 5 = b16 4
mul.wide.s32: b32 ffffffff, b32 5 = b64 fffffffffffffffb
mul.wide.u32: b32 ffffffff, b32 5 = b64 4fffffffb
mul.wide.s16: b16 ffff, b16 5 = b32 fffffffb
mul.wide.u16: b16 ffff, b16 5 = b32 4fffb
mad.wide.s32: b32 ffffffff, b32 5, b64 7 = b64 2
mad.wide.u32: b32 ffffffff, b32 5, b64 7 = b64 500000002
mad.wide.s16: b16 ffff, b16 5, b32 7 = b32 2
mad.wide.u16: b16 ffff, b16 5, b32 7 = b32 50002
min.s32: b32 ffffffff, b32 1 = b32 ffffffff
min.u32: b32 ffffffff, b32 1 = b32 1
max.s64: b64 ffffffffffffffff, b64 1 = b64 1
max.u64: b64 ffffffffffffffff, b64 1 = b64 ffffffffffffffff
min.s16: b16 8000, b16 7fff = b16 8000
max.u16: b16 8000, b16 7fff = b16 8000
div.s32: b32 fffffff9, b32 2 = b32 fffffffd
rem.s32: b32 fffffff9, b32 2 = b32 ffffffff
div.u32: b32 fffffff9, b32 2 = b32 7ffffffc
rem.u32: b32 fffffff9, b32 2 = b32 1
div.s32: b32 80000000, b32 ffffffff = b32 80000000
rem.s32: b32 80000000, b32 ffffffff = b32 0
div.s64: b64 8000000000000000, b64 ffffffffffffffff = b64 8000000000000000
neg.s16: b16 1 = b16 ffff
neg.s32: b32 80000000 = b32 80000000
neg.s64: b64 1 = b64 ffffffffffffffff
abs.s16: b16 fffe = b16 2
abs.s32: b32 80000000 = b32 80000000
abs.s64: b64 ffffffffffffffff = b64 1
and.b16: b16 f0f0, b16 ff00 = b16 f000
or.b16: b16 f0f0, b16 ff00 = b16 fff0
xor.b16: b16 f0f0, b16 ff00 = b16 ff0
not.b16: b16 f0f0 = b16 f0f
and.b32: b32 f0f0f0f0, b32 ffff0000 = b32 f0f00000
or.b32: b32 f0f0f0f0, b32 ffff0000 = b32 fffff0f0
xor.b32: b32 f0f0f0f0, b32 ffff0000 = b32 f0ff0f0
not.b32: b32 f0f0f0f0 = b32 f0f0f0f
and.b64: b64 f0f0f0f0f0f0f0f0, b64 ffffffff00000000 = b64 f0f0f0f000000000
or.b64: b64 f0f0f0f0f0f0f0f0, b64 ffffffff00000000 = b64 fffffffff0f0f0f0
xor.b64: b64 f0f0f0f0f0f0f0f0, b64 ffffffff00000000 = b64 f0f0f0ff0f0f0f0
not.b64: b64 0 = b64 ffffffffffffffff
shl.b16: b16 8001, b32 1 = b16 2
shl.b16: b16 8001, b32 10 = b16 0
shl.b32: b32 80000001, b32 1f = b32 80000000
shl.b32: b32 ffffffff, b32 20 = b32 0
shl.b32: b32 ffffffff, b32 ffffffff = b32 0
shl.b64: b64 1, b32 3f = b64 8000000000000000
shl.b64: b64 1, b32 40 = b64 0
shr.u16: b16 8000, b32 f = b16 1
shr.u16: b16 8000, b32 10 = b16 0
shr.b16: b16 8000, b32 3 = b16 1000
shr.s16: b16 8000, b32 f = b16 ffff
shr.s16: b16 8000, b32 63 = b16 ffff
shr.u32: b32 80000000, b32 1f = b32 1
shr.u32: b32 80000000, b32 20 = b32 0
shr.b32: b32 80000000, b32 4 = b32 8000000
shr.s32: b32 80000000, b32 4 = b32 f8000000
shr.s32: b32 80000000, b32 40 = b32 ffffffff
shr.s32: b32 70000000, b32 40 = b32 0
shr.u64: b64 8000000000000000, b32 3f = b64 1
shr.b64: b64 8000000000000000, b32 40 = b64 0
shr.s64: b64 8000000000000000, b32 41 = b64 ffffffffffffffff
popc.b32: b32 f0f00001 = b32 9
popc.b64: b64 ffffffff00000001 = b32 21
clz.b32: b32 0 = b32 20
clz.b32: b32 8000 = b32 10
clz.b64: b64 0 = b32 40
clz.b64: b64 1 = b32 3f
brev.b32: b32 1 = b32 80000000
brev.b32: b32 12345678 = b32 1e6a2c48
brev.b64: b64 3 = b64 c000000000000000
bfe.u32: b32 12345678, b32 8, b32 c = b32 456
bfe.u32: b32 ffffffff, b32 18, b32 20 = b32 ff
bfe.u32: b32 ffffffff, b32 20, b32 8 = b32 0
bfe.u32: b32 ffffffff, b32 0, b32 ff = b32 ffffffff
bfe.s32: b32 12345678, b32 4, b32 4 = b32 7
bfe.s32: b32 12345698, b32 4, b32 4 = b32 fffffff9
bfe.s32: b32 80000000, b32 1c, b32 8 = b32 fffffff8
bfe.s32: b32 80000000, b32 28, b32 8 = b32 ffffffff
bfe.s32: b32 ffffffff, b32 4, b32 0 = b32 0
bfe.u64: b64 123456789abcdef0, b32 20, b32 10 = b64 5678
bfe.s64: b64 f23456789abcdef0, b32 3c, b32 4 = b64 ffffffffffffffff
bfi.b32: b32 abc, b32 ffffffff, b32 8, b32 c = b32 fffabcff
bfi.b32: b32 abc, b32 12345678, b32 20, b32 c = b32 12345678
bfi.b32: b32 abc, b32 12345678, b32 0, b32 0 = b32 12345678
bfi.b32: b32 ff, b32 0, b32 1c, b32 8 = b32 f0000000
bfi.b64: b64 f, b64 0, b32 3e, b32 4 = b64 c000000000000000
bfind.u32: b32 0 = b32 ffffffff
bfind.u32: b32 8000 = b32 f
bfind.s32: b32 fffffff0 = b32 3
bfind.s32: b32 ffffffff = b32 ffffffff
bfind.u64: b64 100000000 = b32 20
bfind.s64: b64 7 = b32 2
bfind.shiftamt.u32: b32 8000 = b32 10
bfind.shiftamt.u32: b32 0 = b32 ffffffff
bfind.shiftamt.u64: b64 8000 = b32 30
prmt.b32: b32 33221100, b32 77665544, b32 7531 = b32 77553311
prmt.b32: b32 33221100, b32 77665544, b32 123 = b32 112233
prmt.b32: b32 33221180, b32 0, b32 8888 = b32 ffffffff
prmt.b32: b32 33221180, b32 0, b32 9889 = b32 ffff00
lop3.b32: b32 f0f0f0f0, b32 cccccccc, b32 aaaaaaaa, imm ca = b32 cacacaca
lop3.b32: b32 f0f0f0f0, b32 cccccccc, b32 aaaaaaaa, imm 80 = b32 80808080
shf.l.wrap.b32: b32 89abcdef, b32 1234567, b32 8 = b32 23456789
shf.l.wrap.b32: b32 89abcdef, b32 1234567, b32 28 = b32 23456789
shf.l.wrap.b32: b32 89abcdef, b32 1234567, b32 20 = b32 1234567
shf.l.clamp.b32: b32 89abcdef, b32 1234567, b32 28 = b32 89abcdef
shf.l.clamp.b32: b32 89abcdef, b32 1234567, b32 0 = b32 1234567
shf.r.wrap.b32: b32 89abcdef, b32 1234567, b32 8 = b32 6789abcd
shf.r.wrap.b32: b32 89abcdef, b32 1234567, b32 20 = b32 89abcdef
shf.r.clamp.b32: b32 89abcdef, b32 1234567, b32 20 = b32 1234567
shf.r.clamp.b32: b32 89abcdef, b32 1234567, b32 4 = b32 789abcde
and.pred: pred 1, pred 0 = pred 0
and.pred: pred 1, pred 1 = pred 1
or.pred: pred 1, pred 0 = pred 1
or.pred: pred 0, pred 0 = pred 0
xor.pred: pred 1, pred 1 = pred 0
xor.pred: pred 1, pred 0 = pred 1
not.pred: pred 1 = pred 0
not.pred: pred 0 = pred 1
mov.pred: pred 1 = pred 1
mov.pred: imm 0 = pred 0
mov.b32: b16 1234, b16 5678 = b32 56781234
mov.b32: b32 56781234 = b16 1234, b16 5678
mov.b64: b32 11223344, b32 55667788 = b64 5566778811223344
mov.b64: b64 5566778811223344 = b32 11223344, b32 55667788
mov.b64: b16 1, b16 2, b16 3, b16 4 = b64 4000300020001
mov.b64: b64 4000300020001 = b16 1, b16 2, b16 3, b16 4
)";

// 3f800000 is 1, 40000000 is 2, 7fffffff the NaN that f32 instructions make, 7f800000 infinity.
const char* const floatCases = R"(
add.rn.f32: b32 3f800000, b32 33800000 = b32 3f800000
add.rn.f32: b32 3f800001, b32 33800000 = b32 3f800002
add.rn.f32: b32 7f800000, b32 ff800000 = b32 7fffffff
add.rn.f32: b32 7fc12345, b32 3f800000 = b32 7fffffff
add.rn.f32: b32 1, b32 1 = b32 2
sub.rn.f32: b32 3f800000, b32 3f800000 = b32 0
sub.rn.f32: b32 800000, b32 1 = b32 7fffff
mul.rn.f32: b32 40400000, b32 40a00000 = b32 41700000
mul.rn.f32: b32 800000, b32 3f000000 = b32 400000
mul.rn.f32: b32 7f800000, b32 0 = b32 7fffffff
mul.rn.f32: b32 ffc00001, b32 0 = b32 7fffffff
sub.rn.f32: b32 7f800000, b32 7f800000 = b32 7fffffff
div.rn.f32: b32 7f800000, b32 ff800000 = b32 7fffffff
rcp.rn.f32: b32 ffc00001 = b32 7fffffff
fma.rn.f32: b32 3f800000, b32 3f800000, b32 ff800001 = b32 7fffffff
fma.rn.f32: b32 3f800001, b32 3f800001, b32 bf800002 = b32 28800000
fma.rn.f32: b32 7f800000, b32 0, b32 3f800000 = b32 7fffffff
div.rn.f32: b32 3f800000, b32 40400000 = b32 3eaaaaab
div.rn.f32: b32 3f800000, b32 0 = b32 7f800000
div.rn.f32: b32 0, b32 0 = b32 7fffffff
sqrt.rn.f32: b32 40000000 = b32 3fb504f3
sqrt.rn.f32: b32 bf800000 = b32 7fffffff
sqrt.rn.f32: b32 80000000 = b32 80000000
rcp.rn.f32: b32 40400000 = b32 3eaaaaab
min.f32: b32 3f800000, b32 7fc00000 = b32 3f800000
min.f32: b32 7fc00000, b32 3f800000 = b32 3f800000
min.f32: b32 7fc00001, b32 7fc00002 = b32 7fffffff
min.f32: b32 0, b32 80000000 = b32 80000000
min.f32: b32 80000000, b32 0 = b32 80000000
max.f32: b32 0, b32 80000000 = b32 0
max.f32: b32 80000000, b32 0 = b32 0
max.f32: b32 bf800000, b32 ff800000 = b32 bf800000
max.f32: b32 7fc00000, b32 3f800000 = b32 3f800000
min.NaN.f32: b32 7fc00000, b32 3f800000 = b32 7fffffff
min.NaN.f32: b32 3f800000, b32 40000000 = b32 3f800000
max.NaN.f32: b32 3f800000, b32 7fc00000 = b32 7fffffff
max.NaN.f32: b32 0, b32 80000000 = b32 0
max.NaN.f32: b32 3f800000, b32 40000000 = b32 40000000
neg.f32: b32 0 = b32 80000000
neg.f32: b32 bf800000 = b32 3f800000
abs.f32: b32 bf800000 = b32 3f800000
copysign.f32: b32 80000000, b32 40000000 = b32 c0000000
copysign.f32: b32 3f800000, b32 c0000000 = b32 40000000
testp.finite.f32: b32 7f7fffff = pred 1
testp.finite.f32: b32 7f800000 = pred 0
testp.infinite.f32: b32 ff800000 = pred 1
testp.number.f32: b32 7f800000 = pred 1
testp.number.f32: b32 7fc00000 = pred 0
testp.notanumber.f32: b32 7fc00000 = pred 1
testp.normal.f32: b32 800000 = pred 1
testp.normal.f32: b32 7fffff = pred 0
testp.subnormal.f32: b32 7fffff = pred 1
testp.subnormal.f32: b32 0 = pred 0
add.rn.f64: b64 3ff0000000000000, b64 3ca0000000000000 = b64 3ff0000000000000
add.rn.f64: b64 3ff0000000000001, b64 3ca0000000000000 = b64 3ff0000000000002
sub.rn.f64: b64 4008000000000000, b64 3ff0000000000000 = b64 4000000000000000
mul.rn.f64: b64 4008000000000000, b64 4014000000000000 = b64 402e000000000000
fma.rn.f64: b64 3ff0000000000001, b64 3ff0000000000001, b64 bff0000000000002 = b64 3970000000000000
div.rn.f64: b64 3ff0000000000000, b64 4008000000000000 = b64 3fd5555555555555
sqrt.rn.f64: b64 4000000000000000 = b64 3ff6a09e667f3bcd
rcp.rn.f64: b64 4008000000000000 = b64 3fd5555555555555
min.f64: b64 7ff8000000000000, b64 3ff0000000000000 = b64 3ff0000000000000
max.f64: b64 8000000000000000, b64 0 = b64 0
neg.f64: b64 0 = b64 8000000000000000
abs.f64: b64 bff0000000000000 = b64 3ff0000000000000
copysign.f64: b64 8000000000000000, b64 4000000000000000 = b64 c000000000000000
testp.finite.f64: b64 7ff0000000000000 = pred 0
testp.infinite.f64: b64 7ff0000000000000 = pred 1
testp.number.f64: b64 7ff8000000000000 = pred 0
testp.notanumber.f64: b64 7ff8000000000000 = pred 1
testp.normal.f64: b64 3ff0000000000000 = pred 1
testp.subnormal.f64: b64 1 = pred 1
fma.rn.bf16: b16 4040, b16 40a0, b16 3f80 = b16 4180
fma.rn.bf16: b16 3f81, b16 3f81, b16 0 = b16 3f82
fma.rn.bf16: b16 3f81, b16 3f80, b16 3b80 = b16 3f82
fma.rn.bf16: b16 3f81, b16 3f80, b16 bb80 = b16 3f80
fma.rn.bf16: b16 3f81, b16 3f80, b16 3b7f = b16 3f81
fma.rn.bf16: b16 3f80, b16 3f81, b16 1 = b16 3f81
fma.rn.bf16: b16 3f88, b16 3f88, b16 1 = b16 3f91
fma.rn.bf16: b16 3f88, b16 3f88, b16 8001 = b16 3f90
fma.rn.bf16: b16 bf88, b16 3f88, b16 8001 = b16 bf91
fma.rn.bf16: b16 7f7f, b16 4000, b16 0 = b16 7f80
fma.rn.bf16: b16 7f80, b16 0, b16 0 = b16 7fff
fma.rn.bf16: b16 3f80, b16 0, b16 8000 = b16 0
fma.rn.bf16: b16 bf80, b16 0, b16 8000 = b16 8000
fma.rn.bf16: b16 1, b16 3f80, b16 1 = b16 2
fma.rn.bf16x2: b32 40403f81, b32 40a03f81, b32 3f800000 = b32 41803f82
min.bf16: b16 7fc0, b16 3f80 = b16 3f80
min.bf16x2: b32 7fc00000, b32 ffc08000 = b32 7fff8000
max.bf16: b16 8000, b16 0 = b16 0
max.bf16x2: b32 3f80bf80, b32 4000c000 = b32 4000bf80
min.NaN.bf16: b16 7fc0, b16 3f80 = b16 7fff
min.NaN.bf16x2: b32 7fc03f80, b32 3f804000 = b32 7fff3f80
max.NaN.bf16: b16 3f80, b16 4000 = b16 4000
max.NaN.bf16x2: b32 7fc03f80, b32 3f804000 = b32 7fff4000
neg.bf16: b16 0 = b16 8000
neg.bf16x2: b32 3f808000 = b32 bf800000
abs.bf16: b16 bf80 = b16 3f80
abs.bf16x2: b32 bf808000 = b32 3f800000
cvt.rn.f32.f64: b64 3ff0000010000000 = b32 3f800000
cvt.rn.f32.f64: b64 3ff0000030000000 = b32 3f800002
cvt.rn.f32.f64: b64 7ff8000000000000 = b32 7fffffff
cvt.f64.f32: b32 3f800001 = b64 3ff0000020000000
cvt.f32.bf16: b16 3f81 = b32 3f810000
cvt.rn.bf16.f32: b32 3f808000 = b16 3f80
cvt.rn.bf16.f32: b32 3f818000 = b16 3f82
cvt.rn.bf16.f32: b32 3f808001 = b16 3f81
cvt.rn.bf16.f32: b32 7f7fffff = b16 7f80
cvt.rn.bf16.f32: b32 7f800001 = b16 7fff
cvt.rn.bf16.f32: b32 ffc00000 = b16 7fff
cvt.rz.bf16.f32: b32 3f81ffff = b16 3f81
cvt.rz.bf16.f32: b32 7fc00000 = b16 7fff
cvt.rn.bf16x2.f32: b32 3f800000, b32 40008000 = b32 3f804000
cvt.rn.bf16x2.f32: b32 7fc00000, b32 3f818000 = b32 7fff3f82
cvt.rz.bf16x2.f32: b32 3f80ffff, b32 40008000 = b32 3f804000
cvt.rni.f32.f32: b32 40200000 = b32 40000000
cvt.rni.f32.f32: b32 40600000 = b32 40800000
cvt.rzi.f32.f32: b32 c0200000 = b32 c0000000
cvt.rmi.f32.f32: b32 c0200000 = b32 c0400000
cvt.rpi.f32.f32: b32 bf000000 = b32 80000000
cvt.rpi.f32.f32: b32 7fc00000 = b32 7fffffff
cvt.sat.f32.f32: b32 40200000 = b32 3f800000
cvt.sat.f32.f32: b32 bf800000 = b32 0
cvt.sat.f32.f32: b32 7fc00000 = b32 0
cvt.sat.f32.f32: b32 3f000000 = b32 3f000000
cvt.rni.f64.f64: b64 4004000000000000 = b64 4000000000000000
cvt.rzi.f64.f64: b64 c004000000000000 = b64 c000000000000000
cvt.rmi.f64.f64: b64 c004000000000000 = b64 c008000000000000
cvt.rpi.f64.f64: b64 4004000000000000 = b64 4008000000000000
cvt.sat.f64.f64: b64 4004000000000000 = b64 3ff0000000000000
cvta.global.u64: b64 7a00000000000100 = b64 7a00000000000100
cvta.to.global.u64: b64 7a00000000000100 = b64 7a00000000000100
cvta.shared.u64: b64 400 = b64 7b00000000000400
cvta.to.shared.u64: b64 7b00000000000400 = b64 400
)";

// A register may be wider than what is read from it or written to it.
const char* const wideCases = R"(
cvt.u16.u8: b16 1ff = b16 ff
cvt.s32.s8: b32 180 = b32 ffffff80
cvt.u32.u8: b16 1ff = b32 ff
cvt.u8.u32: b32 12345678 = b32 78
cvt.s8.s32: b32 12345688 = b32 ffffff88
cvt.s16.s64: b64 ffff = b32 ffffffff
cvt.u16.u64: b64 1ffff = b64 ffff
cvt.sat.s8.s32: b32 200 = b16 7f
)";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at; (at = text.find(what)) != std::string::npos;)
    text.replace(at, what.size(), by);
  return text;
}

class Opcodes : public testing::Test {
protected:
  void check(const TestCase& test) {
    std::string name = test.name;
    bool moves = name.starts_with("mov");
    if (moves && test.sources.size() > 1)
      name += fmt::format(" pack {}", test.sources.size());
    if (moves && test.results.size() > 1)
      name += fmt::format(" unpack {}", test.results.size());
    seen_.insert(name);
    checkCase(test);
  }
  void checkLines(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      if (!line.empty())
        check(caseOf(line));
  }

  /// Of all opcodes whose name starts so, those that no case had.
  std::string unseen(std::initializer_list<const char*> starts) {
    std::string names;
    for (const auto& [name, opcode] : opcodes())
      for (const char* start : starts)
        if (name.starts_with(start) && !seen_.count(name))
          names += name + " ";
    return names;
  }

  std::set<std::string> seen_;
};

TEST_F(Opcodes, ComputeIntegersBitsAndMoves) {
  for (auto [type, bits] : {std::pair("s16", "b16"),
                            {"u16", "b16"},
                            {"s32", "b32"},
                            {"u32", "b32"},
                            {"s64", "b64"},
                            {"u64", "b64"}})
    checkLines(replaced(replaced(integerCases, "TYPE", type), "B ", bits + std::string(" ")));
  for (const char* type :
       {"b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"}) {
    std::string bits = std::string("b") + (type + 1);
    for (uint64_t value : {uint64_t{0xfedc}, uint64_t{1}}) {
      check({std::string("mov.") + type, {{bits, value}}, {{bits, value}}});
      for (uint64_t choice : {0, 1})
        check({std::string("selp.") + type,
               {{bits, value}, {bits, 7}, {"pred", choice}},
               {{bits, choice ? value : 7}}});
      // The sign of the third: 0x80000000 is negative as s32, and -0 as f32, which is not.
      for (auto [third, first] : {std::pair(0u, true), {0xffffffffu, false}, {5u, true}})
        check({fmt::format("slct.{}.s32", type),
               {{bits, value}, {bits, 7}, {"b32", third}},
               {{bits, first ? value : 7}}});
      for (auto [third, first] : {std::pair(0x80000000u, true),
                                  {0xbf800000u, false},
                                  {0x3f800000u, true},
                                  {0x7fc00000u, false}})
        check({fmt::format("slct.{}.f32", type),
               {{bits, value}, {bits, 7}, {"b32", third}},
               {{bits, first ? value : 7}}});
    }
  }
  checkLines(cases);
  EXPECT_EQ(unseen({"add.s", "add.u", "sub.s", "sub.u", "mul.lo", "mul.hi", "mul.wide", "mad",
                    "div.s", "div.u", "rem",   "min.s", "min.u",  "max.s",  "max.u",    "neg.s",
                    "abs.s", "and",   "or",    "xor",   "not",    "sh",     "popc",     "clz",
                    "brev",  "bf",    "prmt",  "lop3",  "mov",    "selp",   "slct"}),
            unseen({"shfl"}));
}

TEST_F(Opcodes, ComputeFloatsToTheBit) {
  checkLines(floatCases);
  EXPECT_EQ(unseen({"add.rn",  "sub.rn",    "mul.rn",    "fma",       "div.rn",    "sqrt",
                    "rcp",     "min.f",     "max.f",     "min.N",     "max.N",     "neg.f",
                    "abs.f",   "copysign",  "testp",     "cvta",      "cvt.f",     "cvt.rn.bf",
                    "cvt.rz.", "cvt.rni.f", "cvt.rzi.f", "cvt.rmi.f", "cvt.rpi.f", "cvt.sat.f"}),
            "");
}

/// A sample of one type as a number; long double holds each exactly.
long double number(const std::string& type, uint64_t bits) {
  int width = std::stoi(type.substr(1));
  if (type == "f32")
    return std::bit_cast<float>(static_cast<uint32_t>(bits));
  if (type == "f64")
    return std::bit_cast<double>(bits);
  if (type[0] != 's')
    return bits;
  return static_cast<int64_t>(bits << (64 - width)) >> (64 - width);
}

std::vector<uint64_t> samples(const std::string& type) {
  if (type == "f32")
    return {0, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 1};
  if (type == "f64")
    return {0, uint64_t{1} << 63, 0x3ff0000000000000, 0x7ff0000000000000, 0x7ff8000000000000};
  int width = std::stoi(type.substr(1));
  uint64_t top = uint64_t{1} << (width - 1);
  return {0, 1, 2, top - 1, top, top + 1, (top - 1) + top};
}

bool expected(std::string comparison, long double a, long double b) {
  bool unordered = std::isnan(a) || std::isnan(b);
  if (comparison == "num")
    return !unordered;
  if (comparison == "nan")
    return unordered;
  if (unordered)
    return comparison.size() == 3;
  static const std::map<std::string, std::string> names{
      {"lo", "lt"}, {"ls", "le"}, {"hi", "gt"}, {"hs", "ge"}};
  if (names.count(comparison))
    comparison = names.at(comparison);
  bool less = comparison[0] == 'l', greater = comparison[0] == 'g';
  bool orEqual =
      comparison.starts_with("le") || comparison.starts_with("ge") || comparison.starts_with("eq");
  if (comparison.starts_with("ne"))
    return a != b;
  return (less && a < b) || (greater && a > b) || (orEqual && a == b);
}

TEST_F(Opcodes, CompareAllTypes) {
  for (const auto& [name, opcode] : opcodes()) {
    bool isSet = name.starts_with("set.");
    if (!isSet && !name.starts_with("setp."))
      continue;
    // setp.lt.and.s32 or set.lt.u32.s32.
    std::vector<std::string> parts;
    std::istringstream words(name);
    for (std::string part; std::getline(words, part, '.');)
      parts.push_back(part);
    std::string type = parts.back(), bits = "b" + type.substr(1);
    std::string combine = !isSet && parts.size() == 4 ? parts[2] : "";
    for (uint64_t a : samples(type))
      for (uint64_t b : samples(type)) {
        bool truth = expected(parts[1], number(type, a), number(type, b));
        if (isSet) {
          uint64_t yes = parts[2] == "f32" ? 0x3f800000 : 0xffffffff;
          check({name, {{bits, a}, {bits, b}}, {{"b32", truth ? yes : 0}}});
        } else if (combine.empty()) {
          check({name, {{bits, a}, {bits, b}}, {{"pred", truth}, {"pred", !truth}}});
        } else {
          uint64_t c = (a ^ b) & 1;
          auto with = [&](uint64_t x) {
            return combine == "and" ? x & c : combine == "or" ? x | c : x ^ c;
          };
          check({name,
                 {{bits, a}, {bits, b}, {"pred", c}},
                 {{"pred", with(truth)}, {"pred", with(!truth)}}});
        }
        if (HasFailure())
          return;
      }
  }
  EXPECT_EQ(unseen({"set"}), "");
}

TEST_F(Opcodes, MayLeaveTheSecondPredicateOut) {
  check(caseOf("setp.lt.s32: b32 1, b32 2 = pred 1"));
}

/// The value of an integer type nearest to `value`, as bits of its width.
uint64_t clamped(const std::string& type, long double value) {
  int width = std::stoi(type.substr(1));
  bool isSigned = type[0] == 's';
  long double low = isSigned ? -std::ldexp(1.0L, width - 1) : 0;
  long double high = std::ldexp(1.0L, isSigned ? width - 1 : width) - 1;
  value = std::min(std::max(value, low), high);
  uint64_t bits =
      value < 0 ? static_cast<uint64_t>(static_cast<int64_t>(value)) : static_cast<uint64_t>(value);
  return width == 64 ? bits : bits & ((uint64_t{1} << width) - 1);
}

long double rounded(const std::string& mode, long double value) {
  return mode == "rni"   ? std::nearbyint(value)
         : mode == "rzi" ? std::trunc(value)
         : mode == "rmi" ? std::floor(value)
                         : std::ceil(value);
}

/// The register of a type: b16 for 8 bits too.
std::string registerOf(const std::string& type) {
  return type.substr(1) == "8" ? "b16" : "b" + type.substr(1);
}
/// What stands in it: what is narrower is extended.
uint64_t extended(const std::string& type, uint64_t bits) {
  return type == "s8" && bits & 0x80 ? bits | 0xff00 : bits;
}

TEST_F(Opcodes, ConvertBetweenIntegers) {
  const std::vector<std::string> types{"s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"};
  for (const std::string& to : types)
    for (const std::string& from : types)
      for (uint64_t bits : samples(from)) {
        long double value = number(from, bits);
        int width = std::stoi(to.substr(1));
        auto wrapped = value < 0 ? static_cast<uint64_t>(static_cast<int64_t>(value))
                                 : static_cast<uint64_t>(value);
        if (width < 64)
          wrapped &= (uint64_t{1} << width) - 1;
        check({"cvt." + to + "." + from,
               {{registerOf(from), bits}},
               {{registerOf(to), extended(to, wrapped)}}});
        if (!opcodes().count("cvt.sat." + to + "." + from))
          continue;
        check({"cvt.sat." + to + "." + from,
               {{registerOf(from), bits}},
               {{registerOf(to), extended(to, clamped(to, value))}}});
      }
  checkLines(wideCases);
  EXPECT_EQ(unseen({"cvt.s8", "cvt.u8", "cvt.s16", "cvt.u16", "cvt.s32", "cvt.u32", "cvt.s64",
                    "cvt.u64", "cvt.sat.s", "cvt.sat.u"}),
            "");
}

TEST_F(Opcodes, SaturateWhereAValueMayNotFit) {
  EXPECT_EQ(opcodes().count("cvt.sat.s8.s32"), 1u);
  EXPECT_EQ(opcodes().count("cvt.sat.u64.s8"), 1u);
  EXPECT_EQ(opcodes().count("cvt.sat.s64.u32"), 0u);
  EXPECT_EQ(opcodes().count("cvt.sat.u32.u32"), 0u);
}

TEST_F(Opcodes, ConvertFloatsToIntegers) {
  const std::vector<float> floats{0.0F,   0.5F,     1.5F,      2.5F,  -0.5F, -1.5F,  126.7F,
                                  127.5F, 255.5F,   -128.6F,   3e4F,  7e4F,  -4e4F,  2e9F,
                                  3e9F,   -3e9F,    5e9F,      9e18F, 1e19F, -1e19F, 2e19F,
                                  1e30F,  INFINITY, -INFINITY, NAN};
  for (const char* to : {"s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"})
    for (const char* mode : {"rni", "rzi", "rmi", "rpi"})
      for (float value : floats)
        for (bool isDouble : {false, true}) {
          std::string type = to;
          uint64_t bits =
              isDouble ? std::bit_cast<uint64_t>(double{value}) : std::bit_cast<uint32_t>(value);
          uint64_t wanted = 0;
          if (!std::isnan(value))
            wanted = clamped(type, rounded(mode, value));
          else if (isDouble || type.ends_with("64"))
            wanted = uint64_t{1} << (std::stoi(type.substr(1)) - 1);
          check({fmt::format("cvt.{}.{}.{}", mode, to, isDouble ? "f64" : "f32"),
                 {{isDouble ? "b64" : "b32", bits}},
                 {{registerOf(type), extended(type, wanted)}}});
        }
  check(caseOf("cvt.rzi.s64.f64: b64 4330000000000001 = b64 10000000000001"));
  EXPECT_EQ(unseen({"cvt.rni.s", "cvt.rni.u", "cvt.rzi.s", "cvt.rzi.u", "cvt.rmi.s", "cvt.rmi.u",
                    "cvt.rpi.s", "cvt.rpi.u"}),
            "");
}

TEST_F(Opcodes, ConvertIntegersToFloats) {
  for (const char* from : {"s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"}) {
    std::vector<uint64_t> bits = samples(from);
    if (std::string(from).ends_with("64"))
      bits.insert(bits.end(), {0x20000000000001, 0x20000000000003, 0x8000008000000001});
    if (std::string(from).ends_with("32"))
      bits.insert(bits.end(), {0x1000001, 0x1000003, 0xffffff80});
    for (uint64_t each : bits) {
      long double value = number(from, each);
      check({std::string("cvt.rn.f32.") + from,
             {{registerOf(from), each}},
             {{"b32", std::bit_cast<uint32_t>(static_cast<float>(value))}}});
      check({std::string("cvt.rn.f64.") + from,
             {{registerOf(from), each}},
             {{"b64", std::bit_cast<uint64_t>(static_cast<double>(value))}}});
    }
  }
  check(caseOf("cvt.rn.f32.f64: b64 3ff0000000000000 = b32 3f800000"));
  EXPECT_EQ(unseen({"cvt.rn.f"}), "");
}

} // namespace
} // namespace titan::ptx

import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../../test/helpers/soak.ts'
import { rustName } from './rust-name.ts'

const check = (symbol: string, want: string | undefined) => assert.equal(rustName(symbol), want)

test('names of Rust in the legacy mangling are written without their hash', () => {
  check('_ZN3foo17h05af221e174051e9E', 'foo')
  check('_ZN4core3fmt9Formatter3pad17h8e4f0a1b2c3d4e5fE', 'core::fmt::Formatter::pad')
  check(
    '_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE',
    "<Test + 'static as foo::Bar<Test>>::bar",
  )
  check(
    '_ZN4core3ptr85drop_in_place$LT$std..rt..lang_start$LT$$LP$$RP$$GT$..$u7b$$u7b$closure$u7d$$u7d$$GT$17h0123456789abcdefE',
    'core::ptr::drop_in_place<std::rt::lang_start<()>::{{closure}}>',
  )
  check('_ZN4test4main17h05af221e174051e9E.llvm.10654534834', 'test::main')
  check('_ZN8$RF$$BP$$C17h05af221e174051e9E', undefined)
})

test('names of C++ are none of Rust', () => {
  check('_ZN3foo3barEv', undefined)
  check('_ZN3foo17h05af221e174051e9Ev', undefined)
  check('_ZN3foo17h0000000000000000E', undefined)
  check('_ZN17h05af221e174051e9E', undefined)
  check('_ZN3foo17h05af221e174051eXE', undefined)
  check('_ZN3fo', undefined)
  check('main', undefined)
  check('_R', undefined)
})

/** Most from RFC 2603, its tests, and what rustc 1.95 made; expected as rustfilt and c++filt write them. */
test('names of Rust in the mangling v0 are written as people write them', () => {
  check('_RNvC6_123foo3bar', '123foo::bar')
  check(
    '_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y',
    'utf8_idents::საჭმელად_გემრიელი_სადილი',
  )
  check('_RNCNCNgCs6DXkGYLi8lr_2cc5spawn00B5_', 'cc::spawn::{closure#0}::{closure#0}')
  check(
    '_RNCINkXs25_NgCsbmNqQUJIY6D_4core5sliceINyB9_4IterhENuNgNoBb_4iter8iterator8Iterator9rpositionNCNgNpB9_6memchr7memrchrs_0E0Bb_',
    '<core::slice::Iter<u8> as core::iter::iterator::Iterator>::rposition::<core::slice::memchr::memrchr::{closure#1}>::{closure#0}',
  )
  check(
    '_RINbNbCskIICzLVDPPb_5alloc5alloc8box_freeDINbNiB4_5boxed5FnBoxuEp6OutputuEL_ECs1iopQbuBiw2_3std',
    'alloc::alloc::box_free::<dyn alloc::boxed::FnBox<(), Output = ()>>',
  )
  check('_RNvMC0INtC8arrayvec8ArrayVechKj7b_E3new', '<arrayvec::ArrayVec<u8, 123>>::new')
  check('_RMCs4fqI2P2rA04_13const_genericINtB0_8UnsignedKhb_E', '<const_generic::Unsigned<11>>')
  check('_RMCs4fqI2P2rA04_13const_genericINtB0_6SignedKs98_E', '<const_generic::Signed<152>>')
  check('_RMCs4fqI2P2rA04_13const_genericINtB0_6SignedKanb_E', '<const_generic::Signed<-11>>')
  check('_RMCs4fqI2P2rA04_13const_genericINtB0_4BoolKb0_E', '<const_generic::Bool<false>>')
  check('_RMCs4fqI2P2rA04_13const_genericINtB0_4CharKc76_E', "<const_generic::Char<'v'>>")
  check('_RMCs4fqI2P2rA04_13const_genericINtB0_4CharKca_E', "<const_generic::Char<'\\n'>>")
  check('_RMCs4fqI2P2rA04_13const_genericINtB0_4CharKc2202_E', "<const_generic::Char<'\\u{2202}'>>")
  check(
    '_RINvC1a7genericFG0_RL1_RL0_hRL0_hERL1_hE',
    "a::generic::<for<'a, 'b> fn(&'a &'b u8, &'b u8) -> &'a u8>",
  )
  check('_RINvC1a7genericFUKCPhOStEuE', 'a::generic::<unsafe extern "C" fn(*const u8, *mut [u16])>')
  check('_RINvC1a7genericFG_QL0_Ahj3_ReEzE', "a::generic::<for<'a> fn(&'a mut [u8; 3], &str) -> !>")
  check('_RINvC1a7genericThETEE', 'a::generic::<(u8,), ()>')
  check('_RINvC1a7genericDG_INtC1b1FRL0_eEEL_E', "a::generic::<dyn for<'a> b::F<&'a str>>")
  check('_RNSC1a4shim', 'a::{shim:shim#0}')
  check('_RNvC1a4main.llvm.123', 'a::main')
})

test('names that are made to become long or deep are none', () => {
  check(`_RINvC1a1b${'TBa_'.repeat(3)}E`, undefined)
  // Each tuple holds the one before it twice: 2^40 of them.
  let tuples = ''
  let before = 'u'
  for (let i = 0; i < 40; i++) {
    const at = 'INvC1a1b'.length + tuples.length
    tuples += `T${before}${before}E`
    before = `B${(at - 1).toString(36)}_`
  }
  check(`_RINvC1a1b${tuples}E`, undefined)
  check('_RNvMINvC1a1bFGzzzzzzzzzz_EuEu4main', undefined)
  check('_RINvC1a1bFGzzzzzzzzzz_EuE', undefined)
  check(`_RINvC1a1b${'R'.repeat(3000)}uE`, undefined)
  check(`_RNvC4000${'a'.repeat(3990)}1b`, undefined)
  check(`_RNvCu9000aaaa_bbb`, undefined)
  check(`_RNvCu8zzzzzzzz1b`, undefined)
})

test('whatever text follows, there is an answer', () => {
  const part = fc.constantFrom(
    ...'C N M X Y I B_ B0_ B3_ E T R Q A S P O F D G_ Gz_ K L_ L0_ p s_ u v 1a 2bc u3a_b NvC1a1b INvC1a1b Kj7_ h j'.split(
      ' ',
    ),
  )
  fc.assert(
    fc.property(fc.array(part, { maxLength: 80 }), fc.string(), (parts, rest) => {
      for (const symbol of [`_R${parts.join('')}`, `_RNvC1a1b${rest}`, `_ZN${rest}17h05af221e174051e9E`]) {
        const name = rustName(symbol)
        assert.ok(name === undefined || name.length <= 4096)
      }
    }),
    { numRuns: soak ? 100_000 : 2000 },
  )
})

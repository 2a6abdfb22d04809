! Arrays of modules and saved ones get places of their own; a COMMON block is aligned, and its parts stay together.
!
! RUN: env DOMICILE_COMPILER=line=128,way=16384 %flang -O2 %s -module-dir %T -Rpass-missed=domicile-align -o %t 2>%t.said
! RUN: %t | FileCheck %s
! RUN: FileCheck --check-prefix=SAID %s <%t.said
!
! SAID: `block_` is aligned, but not padded
! CHECK: places T T T
! CHECK: sum 5650.
module arrays
  implicit none
  real(8) :: x(100,100), y(100,100)
end module

program fortran
  use arrays
  use iso_c_binding
  implicit none
  real(8), save, target :: z(100,100)
  real(8), target :: p(1000), q(1000)
  common /block/ p, q
  integer :: i
  integer(8) :: at(3)
  x = 1; y = 2; z = 3; p = 4
  do i = 1, 100
    z(i,:) = x(i,:) * i + y(i,:) + p(i)
    q(i) = z(i,1)
  end do
  at = [address(x), address(y), address(z)]
  print '(a,3l2)', ' places', all(mod(at, 128_8) == 0), mod(loc(p), 128_8) == 0, &
    mod(at(1), 16384_8) /= mod(at(2), 16384_8) .and. mod(at(2), 16384_8) /= mod(at(3), 16384_8) .and. &
    mod(at(1), 16384_8) /= mod(at(3), 16384_8) .and. loc(q) - loc(p) == 8000
  print '(a,f10.0)', ' sum', sum(q(:100))
contains
  integer(8) function address(a)
    real(8), target :: a(:,:)
    address = loc(a(1,1))
  end function
end program

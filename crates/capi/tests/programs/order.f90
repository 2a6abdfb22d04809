! Orders as objects, in Fortran.
module work
  implicit none
  integer :: ran(100), count = 0
contains
  subroutine note(number, unused)
    integer, intent(in) :: number, unused
    count = count + 1
    ran(count) = number + 0 * unused
  end subroutine

  subroutine add(x, y)
    real(8), intent(inout) :: x
    real(8), intent(in) :: y
    x = x + y
  end subroutine

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    if (.not. holds) then
      print *, 'not so: ', what
      error stop 1
    end if
  end subroutine
end module

program order_program
  use domicile
  use, intrinsic :: iso_c_binding
  use work
  implicit none
  type(domicile_order_attributes) :: attributes
  type(domicile_order_report) :: report
  type(c_ptr) :: order
  integer :: i
  integer(c_int64_t) :: first, second, third
  character(len=200) :: text
  real(8), target :: x, y(16)

  attributes%hints = 2
  attributes%block = 10
  call check(domicile_order_create(attributes, order) == DOMICILE_OK, 'create')
  call check(domicile_order_block(order, 1) == 10, 'block')
  call check(domicile_order_reserve(order, 100_c_size_t, 10_c_size_t) == DOMICILE_OK, 'reserve')
  do i = 1, 6
    call check(domicile_order_fork(order, note, i, 0, [int(mod(i, 2) * 10, c_int64_t), 0_c_int64_t]) == DOMICILE_OK, 'fork')
  end do
  call check(domicile_order_pending(order) == 6, 'pending')
  call check(domicile_order_run(order, 0, report) == DOMICILE_OK, 'run')
  call check(report%threads == 6 .and. report%bins == 2 .and. report%workers == 1, 'report')
  call check(all(ran(1:6) == [1, 3, 5, 2, 4, 6]), 'the order')

  ! The procedure gets the objects that the pointers point to.
  x = 1
  y = [(real(i, 8), i = 1, 16)]
  do i = 1, 16
    call check(domicile_order_fork(order, add, c_loc(x), c_loc(y(i)), [domicile_hint(x), domicile_hint(y(i))]) &
      == DOMICILE_OK, 'fork with pointers')
  end do
  call check(domicile_order_run(order, 0) == DOMICILE_OK, 'run without a report')
  call check(abs(x - 137) < 0.5, 'the sum')

  ! Dependencies, and a cycle.
  count = 0
  call check(domicile_order_fork(order, note, 1, 0, [50_c_int64_t, 0_c_int64_t], first) == DOMICILE_OK, 'first')
  call check(domicile_order_fork(order, note, 2, 0, [0_c_int64_t, 0_c_int64_t], second) == DOMICILE_OK, 'second')
  call check(domicile_order_depend(order, first, second) == DOMICILE_OK, 'depend')
  call check(domicile_order_fork_after(order, note, 3, 0, [0_c_int64_t, 0_c_int64_t], [first], 1, third) == DOMICILE_OK, 'after')
  call check(domicile_order_depend(order, second, third) == DOMICILE_CYCLE, 'cycle')
  call domicile_order_message(order, text)
  call check(len_trim(text) > 0, 'message')
  call check(domicile_order_run(order, 0) == DOMICILE_OK, 'run of three')
  call check(all(ran(1:3) == [2, 1, 3]), 'who waits')
  call check(domicile_order_fork(order, note, 1, 0, [0_c_int64_t, 0_c_int64_t]) == DOMICILE_OK, 'one more')
  call check(domicile_order_clear(order) == DOMICILE_OK, 'clear')
  call check(domicile_order_pending(order) == 0, 'nothing pending')
  call check(domicile_order_worker(order) == -1, 'worker')
  call check(domicile_order_destroy(order) == DOMICILE_OK, 'destroy')

  attributes%hints = 9
  call check(domicile_order_create(attributes, order) == DOMICILE_INVALID, 'nine hints')
  call domicile_order_message(c_null_ptr, text)
  call check(index(text, 'hints is 9') > 0, 'message of nine hints')
  call domicile_error_text(DOMICILE_OUT_OF_MEMORY, text)
  call check(text == 'out of memory', 'error text')

  ! All sides of the last dimension of the last level, to check that the structure matches C's.
  attributes%hints = 8
  attributes%levels = 3
  attributes%outer(:, 1) = 20
  attributes%outer(:, 2) = 40
  attributes%outer(:, 3) = 40
  attributes%outer(8, 3) = 41
  call check(domicile_order_create(attributes, order) == DOMICILE_INVALID, 'a side that is no multiple')
  call domicile_order_message(c_null_ptr, text)
  call check(index(text, 'outer[2]') > 0 .and. index(text, '41') > 0 .and. index(text, 'dimension 7') > 0, 'which side')
  attributes = domicile_order_attributes(cache_bytes=2**20, tlb_reach_bytes=2**16)
  call check(domicile_order_create(attributes, order) == DOMICILE_OK, 'default block')
  call check(domicile_order_block(order, 0) == 2**15, 'default side')
  call domicile_order_reason(order, text)
  call check(index(text, 'TLB') > 0, 'reason')
  call check(domicile_order_destroy(order) == DOMICILE_OK, 'destroy again')
  print '(a)', 'done'
end program

! Arrays in slots: whole ones, parts, and memory that is a slot's from the start.
program slots
  use domicile
  use domicile_slots
  use, intrinsic :: iso_c_binding
  implicit none
  integer, parameter :: n = 300
  integer(c_int64_t), parameter :: kb = 1024
  type(c_ptr) :: application, strong, weak, group, set, memory
  type(domicile_slots_attributes) :: attributes
  type(domicile_slots_state) :: state
  type(domicile_allocation) :: done
  type(domicile_census) :: census
  integer(c_int64_t), allocatable :: a(:, :), b(:)
  integer(c_int64_t), pointer :: c(:, :)
  integer(c_int32_t) :: colors(16)
  integer(c_size_t) :: count
  integer :: i, j
  character(len=60) :: text

  if (domicile_slots_open(application) /= DOMICILE_OK) then
    call domicile_slots_message(text)
    write (*, '(a)') trim(text)
    stop 1
  end if
  call check(domicile_slots_ask(application, state) == DOMICILE_OK, 'ask')
  call check(state%colors == 16 .and. state%color_bytes == 64 * kb, 'state')
  call check(domicile_slots_available(application) == state%available, 'available')
  call domicile_slots_means(application, text)
  call check(text(1:7) == 'colors:', 'means')
  call check(domicile_slots_bind(application, 0_c_int64_t) == DOMICILE_OK, 'bind')

  ! A matrix without its last column, and a vector.
  allocate (a(n, n), b(20 * n))
  do j = 1, n
    do i = 1, n
      a(i, j) = i + 1000 * j
    end do
  end do
  b = 7
  call check(domicile_slot_create(application, 256 * kb, DOMICILE_SLOT_PRIVATE, strong) == DOMICILE_OK, 'strong')
  call check(domicile_thread_group_create(application, group) == DOMICILE_OK, 'group')
  call check(domicile_thread_group_add(group, 0_c_int64_t) == DOMICILE_OK, 'thread')
  call check(domicile_data_set_create(application, group, set) == DOMICILE_OK, 'set')
  call check(domicile_data_set_add(set, a(:, 1:n - 1)) == DOMICILE_OK, 'columns')
  call check(domicile_data_set_add(set, b) == DOMICILE_OK, 'vector')
  call check(domicile_data_set_add(set, a(1:n - 1, :)) == DOMICILE_INVALID, 'rows')
  call domicile_slots_message(text)
  call check(text(1:42) == 'the part of the array does not lie in one ', 'message')
  call check(domicile_data_set_add(set, b(1:9:2)) == DOMICILE_INVALID, 'stride')
  call check(domicile_data_set_allocate(set, strong, DOMICILE_OTHERS_ABSENT, done) == DOMICILE_OK, 'allocate')
  call check(done%colors == 4 .and. done%left == 0, 'colors')
  call check(4096 * (done%pages + 4) >= 8 * (n * (n - 1) + 20 * n), 'pages')
  call check(domicile_data_set_colors(set, colors, 16_c_size_t, count) == DOMICILE_OK .and. count == 4, 'which')
  call check(domicile_data_set_census(set, census) == DOMICILE_OK, 'census')
  call check(census%pages == done%pages .and. census%other == 0 .and. census%absent == 0, 'counted')
  ! A process that may not see frames cannot repair.
  i = domicile_data_set_repair(set, DOMICILE_OTHERS_ABSENT)
  call check(i == DOMICILE_OK .or. (i == DOMICILE_UNAVAILABLE .and. census%unknown == census%pages), 'repair')
  do j = 1, n
    do i = 1, n
      call check(a(i, j) == i + 1000 * j, 'matrix')
    end do
  end do
  call check(all(b == 7), 'vector')
  call check(domicile_data_set_destroy(set) == DOMICILE_OK, 'end')

  ! A matrix made in the slot.
  call check(domicile_slot_memory(application, strong, c_null_ptr, int(n * n * 8, c_size_t), memory) == DOMICILE_OK, &
    'memory')
  call c_f_pointer(memory, c, [n, n])
  call check(all(c == 0), 'zeros')
  c = a
  call check(sum(c - a) == 0, 'copy')

  ! By address and size, without a slot.
  call check(domicile_data_set_create(application, c_null_ptr, set) == DOMICILE_OK, 'set')
  call check(domicile_data_set_add(set, memory, int(n * n * 8, c_size_t)) == DOMICILE_OK, 'bytes')
  call check(domicile_data_set_allocate(set, c_null_ptr, DOMICILE_OTHERS_ABSENT) == DOMICILE_IN_USE, 'twice')
  call check(domicile_data_set_destroy(set) == DOMICILE_OK, 'end')
  call check(domicile_slot_create(application, 64 * kb, DOMICILE_SLOT_SHARED, weak) == DOMICILE_OK, 'weak')
  call check(domicile_data_set_create(application, c_null_ptr, set) == DOMICILE_OK, 'set')
  call check(domicile_data_set_add(set, a) == DOMICILE_OK, 'matrix')
  call check(domicile_data_set_allocate(set, weak, DOMICILE_OTHERS_ABSENT, done) == DOMICILE_OK, 'allocate')
  call check(done%colors == 1, 'one color')
  call check(domicile_slots_close(application) == DOMICILE_OK, 'close')
  call check(domicile_slots_close(application) == DOMICILE_UNKNOWN_HANDLE, 'closed')
  call check(sum(c - a) == 0, 'memory stays')
  call check(domicile_slot_memory_free(memory) == DOMICILE_OK, 'free')

  attributes%force = 1
  attributes%first_bit = 12
  attributes%bits = 3
  attributes%color_bytes = 128 * kb
  call check(domicile_slots_open(attributes, application) == DOMICILE_OK, 'forced')
  call check(domicile_slots_ask(application, state) == DOMICILE_OK .and. state%colors == 8, 'forced colors')
  call check(state%source == DOMICILE_COLORS_FORCED, 'source')
  call check(domicile_slots_close(application) == DOMICILE_OK, 'close')
  attributes%bits = 0
  call check(domicile_slots_open(attributes, application) == DOMICILE_INVALID, 'no bits')
  call domicile_error_text(DOMICILE_OVERCOMMITTED, text)
  call check(text == 'there is not that much cache left', 'text')
  deallocate (a, b)
  write (*, '(a)') 'done'
contains
  subroutine check(so, what)
    logical, intent(in) :: so
    character(len=*), intent(in) :: what
    character(len=200) :: said
    if (so) return
    call domicile_slots_message(said)
    write (*, '(4a)') 'not so: ', what, '; ', trim(said)
    stop 1
  end subroutine
end program

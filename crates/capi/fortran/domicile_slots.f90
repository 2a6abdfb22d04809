! Cache slots: the interface of domicile/domicile.h for Fortran. domicile_slots(3) describes the calls.
!
!   use domicile_slots
!   use, intrinsic :: iso_c_binding
!   type(c_ptr) :: application, slot, set
!   if (domicile_slots_open(application) /= DOMICILE_OK) then
!     call domicile_slots_message(text)
!     ...
!   error = domicile_slot_create(application, 512_c_int64_t * 1024, DOMICILE_SLOT_PRIVATE, slot)
!   error = domicile_data_set_create(application, c_null_ptr, set)
!   error = domicile_data_set_add(set, a)                  ! a whole array, or any contiguous part
!   error = domicile_data_set_allocate(set, slot, DOMICILE_OTHERS_ABSENT)
!   error = domicile_slots_close(application)
!
! The address of an array counts: give domicile_data_set_add the array itself, never an expression. This module needs
! the module domicile, and passes on its errors.
module domicile_slots
  use, intrinsic :: iso_c_binding, only: c_int, c_int32_t, c_int64_t, c_ptr, c_size_t
  use domicile, only: DOMICILE_OK, DOMICILE_NULL, DOMICILE_INVALID, DOMICILE_OUT_OF_MEMORY, DOMICILE_INTERNAL, &
    DOMICILE_UNAVAILABLE, DOMICILE_OVERCOMMITTED, DOMICILE_UNKNOWN_HANDLE, DOMICILE_IN_USE, DOMICILE_UNFIT, &
    DOMICILE_REFUSED, domicile_error_text
  implicit none
  private
  public :: domicile_slots_open, domicile_slots_close, domicile_slots_available, domicile_slots_ask
  public :: domicile_slots_bind, domicile_slots_message, domicile_slots_means
  public :: domicile_slot_create, domicile_slot_destroy, domicile_slot_memory, domicile_slot_memory_free
  public :: domicile_thread_group_create, domicile_thread_group_add, domicile_thread_group_add_cpu
  public :: domicile_thread_group_destroy
  public :: domicile_data_set_create, domicile_data_set_add, domicile_data_set_allocate, domicile_data_set_colors
  public :: domicile_data_set_census, domicile_data_set_repair, domicile_data_set_destroy

  ! The results of calls.
  public :: DOMICILE_OK, DOMICILE_NULL, DOMICILE_INVALID, DOMICILE_OUT_OF_MEMORY, DOMICILE_INTERNAL
  public :: DOMICILE_UNAVAILABLE, DOMICILE_OVERCOMMITTED, DOMICILE_UNKNOWN_HANDLE, DOMICILE_IN_USE
  public :: DOMICILE_UNFIT, DOMICILE_REFUSED, domicile_error_text

  ! The kind of a slot: weak locality, with colors that others may have too; strong locality, with colors of its own.
  integer(c_int32_t), parameter, public :: DOMICILE_SLOT_SHARED = 1
  integer(c_int32_t), parameter, public :: DOMICILE_SLOT_PRIVATE = 2

  ! Other users of memory while it gets its colors.
  integer(c_int32_t), parameter, public :: DOMICILE_OTHERS_ABSENT = 0
  integer(c_int32_t), parameter, public :: DOMICILE_OTHERS_RUNNING = 1

  ! The source of the colors.
  integer(c_int32_t), parameter, public :: DOMICILE_COLORS_NONE = 0
  integer(c_int32_t), parameter, public :: DOMICILE_COLORS_VALIDATED = 1
  integer(c_int32_t), parameter, public :: DOMICILE_COLORS_FORCED = 2

  ! The attributes of an application; zeros are the defaults.
  type, bind(c), public :: domicile_slots_attributes
    integer(c_size_t) :: size = 40
    integer(c_int32_t) :: processors = 0
    integer(c_int32_t) :: force = 0
    integer(c_int32_t) :: first_bit = 0
    integer(c_int32_t) :: bits = 0
    integer(c_int64_t) :: color_bytes = 0
    integer(c_int32_t) :: without_daemon = 0
    integer(c_int32_t) :: measure = 0
  end type

  ! The state of an application.
  type, bind(c), public :: domicile_slots_state
    integer(c_size_t) :: size = 48
    integer(c_int32_t) :: colors = 0
    integer(c_int32_t) :: caches = 0
    integer(c_int64_t) :: color_bytes = 0
    integer(c_int64_t) :: available = 0
    integer(c_int32_t) :: source = DOMICILE_COLORS_NONE
    integer(c_int32_t) :: first_bit = 0
    integer(c_int32_t) :: recording = 0
    integer(c_int32_t) :: reserved = 0
  end type

  ! The report of an allocation.
  type, bind(c), public :: domicile_allocation
    integer(c_size_t) :: size = 64
    integer(c_int32_t) :: colors = 0
    integer(c_int32_t) :: caches = 0
    integer(c_int64_t) :: pages = 0
    integer(c_int64_t) :: kept = 0
    integer(c_int64_t) :: filled = 0
    integer(c_int64_t) :: exchanged = 0
    integer(c_int64_t) :: left = 0
    integer(c_int64_t) :: left_out = 0
  end type

  ! Counts of the pages of a data set.
  type, bind(c), public :: domicile_census
    integer(c_size_t) :: size = 48
    integer(c_int64_t) :: pages = 0
    integer(c_int64_t) :: allowed = 0
    integer(c_int64_t) :: other = 0
    integer(c_int64_t) :: absent = 0
    integer(c_int64_t) :: unknown = 0
  end type

  ! Opens an application.
  interface domicile_slots_open
    function domicile_slots_open_with(attributes, application) result(error) bind(c, name='domicile_slots_open')
      import :: c_int, c_ptr, domicile_slots_attributes
      type(domicile_slots_attributes), intent(in) :: attributes
      type(c_ptr), intent(out) :: application
      integer(c_int) :: error
    end function
    function domicile_slots_open_plain(application) result(error)
      import :: c_int, c_ptr
      type(c_ptr), intent(out) :: application
      integer(c_int) :: error
    end function
  end interface

  ! Adds memory to a data set: an array, or any contiguous part of one; or this many bytes from an address on.
  interface domicile_data_set_add
    function domicile_data_set_add_array(set, array) result(error) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: set
      type(*), dimension(..), intent(in) :: array
      integer(c_int) :: error
    end function
    function domicile_data_set_add_bytes(set, start, bytes) result(error) bind(c, name='domicile_data_set_add')
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: set, start
      integer(c_size_t), value :: bytes
      integer(c_int) :: error
    end function
  end interface

  interface
    ! Ends an application with its slots, groups and data sets; the data stays where it is.
    function domicile_slots_close(application) result(error) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: application
      integer(c_int) :: error
    end function
    ! Bytes of cache that are still available.
    function domicile_slots_available(application) result(bytes) bind(c)
      import :: c_int64_t, c_ptr
      type(c_ptr), value :: application
      integer(c_int64_t) :: bytes
    end function
    function domicile_slots_ask(application, state) result(error) bind(c)
      import :: c_int, c_ptr, domicile_slots_state
      type(c_ptr), value :: application
      type(domicile_slots_state), intent(inout) :: state
      integer(c_int) :: error
    end function
    ! Makes the caller the thread that groups know by this number.
    function domicile_slots_bind(application, thread) result(error) bind(c)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: application
      integer(c_int64_t), value :: thread
      integer(c_int) :: error
    end function
    ! The message of the caller's last failed call, cut or filled with blanks to the length of text.
    subroutine domicile_slots_message(text)
      character(len=*), intent(out) :: text
    end subroutine
    ! The facilities that are in use, and the reasons.
    subroutine domicile_slots_means(application, text)
      import :: c_ptr
      type(c_ptr), intent(in) :: application
      character(len=*), intent(out) :: text
    end subroutine

    ! A slot of this many bytes in each shared cache whose processors use it.
    function domicile_slot_create(application, bytes, kind, slot) result(error) bind(c)
      import :: c_int, c_int32_t, c_int64_t, c_ptr
      type(c_ptr), value :: application
      integer(c_int64_t), value :: bytes
      integer(c_int32_t), value :: kind
      type(c_ptr), intent(out) :: slot
      integer(c_int) :: error
    end function
    function domicile_slot_destroy(slot) result(error) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: slot
      integer(c_int) :: error
    end function
    ! Zeroed memory in a slot, for c_f_pointer; a group of c_null_ptr stands for all threads.
    function domicile_slot_memory(application, slot, group, bytes, memory) result(error) bind(c)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: application, slot, group
      integer(c_size_t), value :: bytes
      type(c_ptr), intent(out) :: memory
      integer(c_int) :: error
    end function
    function domicile_slot_memory_free(memory) result(error) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: memory
      integer(c_int) :: error
    end function

    function domicile_thread_group_create(application, group) result(error) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: application
      type(c_ptr), intent(out) :: group
      integer(c_int) :: error
    end function
    ! Adds a thread by its number; a caller that is not bound yet is bound to it.
    function domicile_thread_group_add(group, thread) result(error) bind(c)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: group
      integer(c_int64_t), value :: thread
      integer(c_int) :: error
    end function
    function domicile_thread_group_add_cpu(group, cpu) result(error) bind(c)
      import :: c_int, c_int32_t, c_ptr
      type(c_ptr), value :: group
      integer(c_int32_t), value :: cpu
      integer(c_int) :: error
    end function
    function domicile_thread_group_destroy(group) result(error) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: group
      integer(c_int) :: error
    end function

    ! A data set that the threads of a group use; c_null_ptr: all threads.
    function domicile_data_set_create(application, group, set) result(error) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: application, group
      type(c_ptr), intent(out) :: set
      integer(c_int) :: error
    end function
    ! Gives the data set the slot's colors; a slot of c_null_ptr confines it to the fewest.
    function domicile_data_set_allocate(set, slot, others, done) result(error) bind(c)
      import :: c_int, c_int32_t, c_ptr, domicile_allocation
      type(c_ptr), value :: set, slot
      integer(c_int32_t), value :: others
      type(domicile_allocation), intent(inout), optional :: done
      integer(c_int) :: error
    end function
    ! The data set's colors, at most room of them; count is their number.
    function domicile_data_set_colors(set, colors, room, count) result(error) bind(c)
      import :: c_int, c_int32_t, c_ptr, c_size_t
      type(c_ptr), value :: set
      integer(c_int32_t), intent(out) :: colors(*)
      integer(c_size_t), value :: room
      integer(c_size_t), intent(out) :: count
      integer(c_int) :: error
    end function
    function domicile_data_set_census(set, census) result(error) bind(c)
      import :: c_int, c_ptr, domicile_census
      type(c_ptr), value :: set
      type(domicile_census), intent(inout) :: census
      integer(c_int) :: error
    end function
    function domicile_data_set_repair(set, others, census) result(error) bind(c)
      import :: c_int, c_int32_t, c_ptr, domicile_census
      type(c_ptr), value :: set
      integer(c_int32_t), value :: others
      type(domicile_census), intent(inout), optional :: census
      integer(c_int) :: error
    end function
    function domicile_data_set_destroy(set) result(error) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: set
      integer(c_int) :: error
    end function
  end interface
end module

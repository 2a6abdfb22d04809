! Orders of work as objects: the interface of domicile/domicile.h for Fortran. domicile_order(3)
! describes the calls; domicile_th is the module for the paper's three calls.
!
!   use domicile
!   use, intrinsic :: iso_c_binding
!   type(domicile_order_attributes) :: attributes
!   type(c_ptr) :: order
!   attributes%hints = 2
!   if (domicile_order_create(attributes, order) /= DOMICILE_OK) then
!     call domicile_order_message(c_null_ptr, text)
!     ...
!   error = domicile_order_fork(order, f, c_loc(x), c_loc(y), [domicile_hint(a(1, i)), domicile_hint(b(1, j))])
!   error = domicile_order_run(order, 0)
!   error = domicile_order_destroy(order)
!
! A thread's procedure gets the objects that its two pointers point to: subroutine f(x, y); real :: x(*), y(*). Two
! integers can replace the pointers; their values are kept: subroutine f(i, j); integer, intent(in) :: i, j.
module domicile
  use, intrinsic :: iso_c_binding, only: c_int, c_int32_t, c_int64_t, c_ptr, c_size_t
  implicit none
  private
  public :: domicile_order_create, domicile_order_destroy, domicile_order_fork, domicile_order_fork_after
  public :: domicile_order_depend, domicile_order_reserve, domicile_order_run, domicile_order_clear
  public :: domicile_order_pending, domicile_order_worker, domicile_order_block, domicile_order_reason
  public :: domicile_order_message, domicile_error_text, domicile_hint
  public :: domicile_caches_start, domicile_caches_end, domicile_caches_ask, domicile_home_create, domicile_home_destroy
  public :: domicile_home_cache, domicile_ship, domicile_ship_message

  integer(c_int), parameter, public :: DOMICILE_OK = 0
  integer(c_int), parameter, public :: DOMICILE_NULL = 1
  integer(c_int), parameter, public :: DOMICILE_INVALID = 2
  integer(c_int), parameter, public :: DOMICILE_OUT_OF_MEMORY = 3
  integer(c_int), parameter, public :: DOMICILE_RUNNING = 4
  integer(c_int), parameter, public :: DOMICILE_NOT_INSIDE = 5
  integer(c_int), parameter, public :: DOMICILE_UNKNOWN_THREAD = 6
  integer(c_int), parameter, public :: DOMICILE_CYCLE = 7
  integer(c_int), parameter, public :: DOMICILE_PANIC = 8
  integer(c_int), parameter, public :: DOMICILE_INTERNAL = 9
  integer(c_int), parameter, public :: DOMICILE_UNAVAILABLE = 10
  integer(c_int), parameter, public :: DOMICILE_OVERCOMMITTED = 11
  integer(c_int), parameter, public :: DOMICILE_UNKNOWN_HANDLE = 12
  integer(c_int), parameter, public :: DOMICILE_IN_USE = 13
  integer(c_int), parameter, public :: DOMICILE_UNFIT = 14
  integer(c_int), parameter, public :: DOMICILE_REFUSED = 15

  ! The order in which bins run.
  integer(c_int32_t), parameter, public :: DOMICILE_TOUR_FIRST_FORK = 0
  integer(c_int32_t), parameter, public :: DOMICILE_TOUR_NEAREST = 1
  integer(c_int32_t), parameter, public :: DOMICILE_TOUR_HILBERT = 2

  integer, parameter, public :: DOMICILE_HINTS_MAX = 8
  integer, parameter, public :: DOMICILE_LEVELS_MAX = 3

  ! The id of a thread that was forked by a running thread.
  integer(c_int64_t), parameter, public :: DOMICILE_NO_THREAD = -1

  ! The attributes of an order; zeros are the defaults. outer(:, level) are the sides for a further cache.
  type, bind(c), public :: domicile_order_attributes
    integer(c_size_t) :: size = 312
    integer(c_int32_t) :: hints = 0
    integer(c_int32_t) :: workers = 0
    integer(c_int32_t) :: tour = DOMICILE_TOUR_FIRST_FORK
    integer(c_int32_t) :: fold = 0
    integer(c_int64_t) :: block(DOMICILE_HINTS_MAX) = 0
    integer(c_int32_t) :: levels = 0
    integer(c_int32_t) :: bins = 0
    integer(c_int64_t) :: outer(DOMICILE_HINTS_MAX, DOMICILE_LEVELS_MAX) = 0
    integer(c_int64_t) :: cache_bytes = 0
    integer(c_int64_t) :: tlb_reach_bytes = 0
    integer(c_int64_t) :: at_caches = 0
  end type

  ! The report of a run.
  type, bind(c), public :: domicile_order_report
    integer(c_size_t) :: size = 40
    integer(c_int64_t) :: threads = 0
    integer(c_int64_t) :: bins = 0
    integer(c_int64_t) :: workers = 0
    integer(c_int64_t) :: at_caches = 0
  end type

  ! The outcomes of calls of domicile_ship, and the cost of one call in nanoseconds.
  type, bind(c), public :: domicile_caches_state
    integer(c_size_t) :: size = 104
    integer(c_int64_t) :: caches = 0
    integer(c_int64_t) :: hand_over_ns = 0
    integer(c_int64_t) :: wake_ns = 0
    integer(c_int64_t) :: shipped = 0
    integer(c_int64_t) :: here = 0
    integer(c_int64_t) :: one_cache = 0
    integer(c_int64_t) :: forked = 0
    integer(c_int64_t) :: fits_one_cache = 0
    integer(c_int64_t) :: fits_no_caches = 0
    integer(c_int64_t) :: too_short = 0
    integer(c_int64_t) :: nested = 0
    integer(c_int64_t) :: no_gain = 0
  end type

  interface
    function domicile_order_create(attributes, order) result(error) bind(c)
      import :: c_int, c_ptr, domicile_order_attributes
      type(domicile_order_attributes), intent(in), optional :: attributes
      type(c_ptr), intent(out) :: order
      integer(c_int) :: error
    end function
    function domicile_order_destroy(order) result(error) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: order
      integer(c_int) :: error
    end function
    ! Makes a pending thread run after another one; a cycle is refused.
    function domicile_order_depend(order, later, earlier) result(error) bind(c)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: order
      integer(c_int64_t), value :: later, earlier
      integer(c_int) :: error
    end function
    ! Makes room for this many threads in this many bins.
    function domicile_order_reserve(order, threads, bins) result(error) bind(c)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: order
      integer(c_size_t), value :: threads, bins
      integer(c_int) :: error
    end function
    ! Runs all pending threads; keep = 0 forgets them, any other value keeps them for the next run.
    function domicile_order_run(order, keep, report) result(error) bind(c)
      import :: c_int, c_ptr, domicile_order_report
      type(c_ptr), value :: order
      integer(c_int), value :: keep
      type(domicile_order_report), intent(inout), optional :: report
      integer(c_int) :: error
    end function
    ! Forgets all pending threads.
    function domicile_order_clear(order) result(error) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: order
      integer(c_int) :: error
    end function
    function domicile_order_pending(order) result(threads) bind(c)
      import :: c_int64_t, c_ptr
      type(c_ptr), value :: order
      integer(c_int64_t) :: threads
    end function
    ! The worker that runs the caller, from 0; -1 outside a run.
    function domicile_order_worker(order) result(worker) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: order
      integer(c_int) :: worker
    end function
    ! The side of a block along a dimension, counted from 0.
    function domicile_order_block(order, dimension) result(side) bind(c)
      import :: c_int32_t, c_int64_t, c_ptr
      type(c_ptr), value :: order
      integer(c_int32_t), value :: dimension
      integer(c_int64_t) :: side
    end function
    ! The reason for the block's sides, cut or filled with blanks to the length of text.
    subroutine domicile_order_reason(order, text)
      import :: c_ptr
      type(c_ptr), intent(in) :: order
      character(len=*), intent(out) :: text
    end subroutine
    ! The message of the last failed call; for c_null_ptr, of the last domicile_order_create.
    subroutine domicile_order_message(order, text)
      import :: c_ptr
      type(c_ptr), intent(in) :: order
      character(len=*), intent(out) :: text
    end subroutine
    ! An error in a few words.
    subroutine domicile_error_text(error, text)
      import :: c_int
      integer(c_int), intent(in) :: error
      character(len=*), intent(out) :: text
    end subroutine
    ! Starts a worker on each cache that the process may use. domicile_ship(3) says more.
    function domicile_caches_start(caches) result(error) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), intent(out) :: caches
      integer(c_int) :: error
    end function
    ! Releases the caches; the workers end with the last home.
    function domicile_caches_end(caches) result(error) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: caches
      integer(c_int) :: error
    end function
    function domicile_caches_ask(caches, state) result(error) bind(c)
      import :: c_int, c_ptr, domicile_caches_state
      type(c_ptr), value :: caches
      type(domicile_caches_state), intent(inout) :: state
      integer(c_int) :: error
    end function
    ! Assigns a cache to data of this many bytes.
    function domicile_home_create(caches, bytes, home) result(error) bind(c)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: caches
      integer(c_int64_t), value :: bytes
      type(c_ptr), intent(out) :: home
      integer(c_int) :: error
    end function
    function domicile_home_destroy(home) result(error) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: home
      integer(c_int) :: error
    end function
    ! The number of a home's cache, from 0.
    function domicile_home_cache(home) result(cache) bind(c)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: home
      integer(c_int32_t) :: cache
    end function
    ! Calls f at the cache of the data, with the objects that the two pointers point to, and waits. Results go there.
    function domicile_ship(home, f, arg1, arg2) result(error)
      import :: c_int, c_ptr
      type(c_ptr), intent(in) :: home, arg1, arg2
      external :: f
      integer(c_int) :: error
    end function
    ! The message of the last failed call for caches, cut or filled with blanks.
    subroutine domicile_ship_message(text)
      character(len=*), intent(out) :: text
    end subroutine
    ! The address of a variable or an array element, as a hint.
    function domicile_hint(place) result(hint)
      import :: c_int64_t
      type(*), intent(in) :: place
      integer(c_int64_t) :: hint
    end function
  end interface

  ! Forks a thread that will call f(arg1, arg2). There are as many hints as the attributes say.
  interface domicile_order_fork
    function domicile_order_fork_ptr(order, f, arg1, arg2, hints, thread) result(error)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), intent(in) :: order, arg1, arg2
      external :: f
      integer(c_int64_t), intent(in) :: hints(*)
      integer(c_int64_t), intent(out), optional :: thread
      integer(c_int) :: error
    end function
    function domicile_order_fork_int32(order, f, arg1, arg2, hints, thread) result(error)
      import :: c_int, c_int32_t, c_int64_t, c_ptr
      type(c_ptr), intent(in) :: order
      external :: f
      integer(c_int32_t), intent(in) :: arg1, arg2
      integer(c_int64_t), intent(in) :: hints(*)
      integer(c_int64_t), intent(out), optional :: thread
      integer(c_int) :: error
    end function
    function domicile_order_fork_int64(order, f, arg1, arg2, hints, thread) result(error)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), intent(in) :: order
      external :: f
      integer(c_int64_t), intent(in) :: arg1, arg2
      integer(c_int64_t), intent(in) :: hints(*)
      integer(c_int64_t), intent(out), optional :: thread
      integer(c_int) :: error
    end function
  end interface

  ! The same for a thread that runs after the threads whose ids are earlier(1:count).
  interface domicile_order_fork_after
    function domicile_order_fork_after_ptr(order, f, arg1, arg2, hints, earlier, count, thread) result(error)
      import :: c_int, c_int32_t, c_int64_t, c_ptr
      type(c_ptr), intent(in) :: order, arg1, arg2
      external :: f
      integer(c_int64_t), intent(in) :: hints(*), earlier(*)
      integer(c_int32_t), intent(in) :: count
      integer(c_int64_t), intent(out), optional :: thread
      integer(c_int) :: error
    end function
    function domicile_order_fork_after_int32(order, f, arg1, arg2, hints, earlier, count, thread) result(error)
      import :: c_int, c_int32_t, c_int64_t, c_ptr
      type(c_ptr), intent(in) :: order
      external :: f
      integer(c_int32_t), intent(in) :: arg1, arg2
      integer(c_int64_t), intent(in) :: hints(*), earlier(*)
      integer(c_int32_t), intent(in) :: count
      integer(c_int64_t), intent(out), optional :: thread
      integer(c_int) :: error
    end function
  end interface
end module

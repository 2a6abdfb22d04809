! Threads that are run in an order that is kind to caches: the three calls of
!
!   J. Philbin, J. Edler, O. J. Anshus, C. C. Douglas, K. Li, "Thread Scheduling for Cache
!   Locality", ASPLOS 1996, section 3.1
!
! as a Fortran program uses them. domicile/th.h describes them, th(3) in more detail.
!
!   use domicile_th
!   call th_init(0, 0)
!   do i = 1, n
!     do j = 1, n
!       call th_fork(dot_product_of, i, j, a(1, i), b(1, j))
!     end do
!   end do
!   call th_run(0)
!
! The two arguments of a thread are
!
!   two integers       their values at the fork are kept: the loop variables may change. The
!                      procedure gets them as usual: subroutine f(i, j); integer, intent(in) :: i, j
!   two type(c_ptr)    the objects that they point to (c_loc(x)) are the procedure's arguments:
!                      subroutine f(x, y); real :: x(*), y(*). They must still be there in th_run.
!
! The hints are one to three variables or array elements, without brackets or c_loc. Their
! addresses count: pass elements of the array itself, never an expression, which has an address of
! its own. Leave out the dimensions that the plane does not have (in C, such a dimension is a hint
! of 0).
!
! A thread's procedure may be external, of a module, or internal to a procedure that has not
! returned when th_run is called.
module domicile_th
  use, intrinsic :: iso_c_binding, only: c_int32_t, c_int64_t, c_ptr
  implicit none
  private
  public :: th_init, th_fork, th_run

  ! Sets the bytes of a block in each dimension and the expected number of bins; 0 is the default.
  interface th_init
    subroutine domicile_th_init_int32(blocksize, hashsize)
      import :: c_int32_t
      integer(c_int32_t), intent(in) :: blocksize, hashsize
    end subroutine
    subroutine domicile_th_init_int64(blocksize, hashsize)
      import :: c_int64_t
      integer(c_int64_t), intent(in) :: blocksize, hashsize
    end subroutine
  end interface

  ! Forks a thread that will call f(arg1, arg2).
  interface th_fork
    subroutine domicile_th_fork_int32(f, arg1, arg2, hint1, hint2, hint3)
      import :: c_int32_t
      external :: f
      integer(c_int32_t), intent(in) :: arg1, arg2
      type(*), intent(in) :: hint1
      type(*), intent(in), optional :: hint2, hint3
    end subroutine
    subroutine domicile_th_fork_int64(f, arg1, arg2, hint1, hint2, hint3)
      import :: c_int64_t
      external :: f
      integer(c_int64_t), intent(in) :: arg1, arg2
      type(*), intent(in) :: hint1
      type(*), intent(in), optional :: hint2, hint3
    end subroutine
    subroutine domicile_th_fork_ptr(f, arg1, arg2, hint1, hint2, hint3)
      import :: c_ptr
      external :: f
      type(c_ptr), intent(in) :: arg1, arg2
      type(*), intent(in) :: hint1
      type(*), intent(in), optional :: hint2, hint3
    end subroutine
  end interface

  ! Runs all threads; keep = 0 forgets them, any other value keeps them for the next th_run.
  interface th_run
    subroutine domicile_th_run_int32(keep)
      import :: c_int32_t
      integer(c_int32_t), intent(in) :: keep
    end subroutine
    subroutine domicile_th_run_int64(keep)
      import :: c_int64_t
      integer(c_int64_t), intent(in) :: keep
    end subroutine
  end interface
end module

!> Fourier transforms of turb3d: of a cube of 64 x 64 x 64 real numbers, in place. The first 33 complex numbers of the
!> transform of a real line are enough; they need two places more than the line: arrays are 66 x 64 x 64.
!>
!> One direction after another, each one parallel loop: lines along x and y are in planes, and the loops go over planes; lines along z go
!> through all planes, and the loop goes over y. A line is copied into a thread's own memory and back.
module transform
  implicit none
  private
  public :: forward, inverse, prepare, n, wide

  integer, parameter :: n = 64, wide = n + 2
  !> exp(-2 pi i k/64)
  double precision :: cosine(0:n - 1), sine(0:n - 1)

contains

  subroutine prepare()
    double precision, parameter :: pi = 3.14159265358979324d0
    integer :: k

    do k = 0, n - 1
       cosine(k) = cos(2*pi*k/n)
       sine(k) = -sin(2*pi*k/n)
    end do
  end subroutine prepare

  !> From points to waves, divided by the number of points.
  subroutine forward(a)
    double precision, intent(inout) :: a(wide, n, n)

    call lines_to_waves(a)
    call along_y(a, .false.)
    call along_z(a, .false.)
  end subroutine forward

  !> From waves to points.
  subroutine inverse(a)
    double precision, intent(inout) :: a(wide, n, n)

    call along_z(a, .true.)
    call along_y(a, .true.)
    call waves_to_lines(a)
  end subroutine inverse

  !> Two real lines at a time are the real and imaginary part of a complex one.
  subroutine lines_to_waves(a)
    double precision, intent(inout) :: a(wide, n, n)
    double precision, parameter :: half = 0.5d0/dble(n)**3
    double precision :: re(0:n - 1), im(0:n - 1), to_re(0:n), to_im(0:n)
    integer :: i, j, k

    !$omp parallel do schedule(static) private(i, j, re, im, to_re, to_im)
    do k = 1, n
       do j = 1, n, 2
          do i = 1, n
             re(i - 1) = a(i, j, k)
             im(i - 1) = a(i, j + 1, k)
          end do
          call line(re, im, to_re, to_im)
          to_re(n) = to_re(0)
          to_im(n) = to_im(0)
          do i = 0, n/2
             a(2*i + 1, j, k) = half*(to_re(i) + to_re(n - i))
             a(2*i + 2, j, k) = half*(to_im(i) - to_im(n - i))
             a(2*i + 1, j + 1, k) = half*(to_im(i) + to_im(n - i))
             a(2*i + 2, j + 1, k) = half*(to_re(n - i) - to_re(i))
          end do
       end do
    end do
  end subroutine lines_to_waves

  subroutine waves_to_lines(a)
    double precision, intent(inout) :: a(wide, n, n)
    double precision :: re(0:n), im(0:n), to_re(0:n - 1), to_im(0:n - 1)
    integer :: i, j, k

    !$omp parallel do schedule(static) private(i, j, re, im, to_re, to_im)
    do k = 1, n
       do j = 1, n, 2
          do i = 0, n/2
             re(n - i) = a(2*i + 1, j, k) + a(2*i + 2, j + 1, k)
             im(n - i) = a(2*i + 1, j + 1, k) - a(2*i + 2, j, k)
             re(i) = a(2*i + 1, j, k) - a(2*i + 2, j + 1, k)
             im(i) = a(2*i + 2, j, k) + a(2*i + 1, j + 1, k)
          end do
          call line(im, re, to_im, to_re)
          do i = 1, n
             a(i, j, k) = to_re(i - 1)
             a(i, j + 1, k) = to_im(i - 1)
          end do
       end do
    end do
  end subroutine waves_to_lines

  !> A transform with real and imaginary parts exchanged is the inverse transform.
  subroutine along_y(a, back)
    double precision, intent(inout) :: a(wide, n, n)
    logical, intent(in) :: back
    double precision :: re(0:n - 1), im(0:n - 1), to_re(0:n - 1), to_im(0:n - 1)
    integer :: i, j, k, one, other

    one = merge(1, 0, back)
    other = 1 - one
    !$omp parallel do schedule(static) private(i, j, re, im, to_re, to_im)
    do k = 1, n
       do i = 1, wide, 2
          do j = 1, n
             re(j - 1) = a(i + one, j, k)
             im(j - 1) = a(i + other, j, k)
          end do
          call line(re, im, to_re, to_im)
          do j = 1, n
             a(i + one, j, k) = to_re(j - 1)
             a(i + other, j, k) = to_im(j - 1)
          end do
       end do
    end do
  end subroutine along_y

  subroutine along_z(a, back)
    double precision, intent(inout) :: a(wide, n, n)
    logical, intent(in) :: back
    double precision :: re(0:n - 1), im(0:n - 1), to_re(0:n - 1), to_im(0:n - 1)
    integer :: i, j, k, one, other

    one = merge(1, 0, back)
    other = 1 - one
    !$omp parallel do schedule(static) private(i, k, re, im, to_re, to_im)
    do j = 1, n
       do i = 1, wide, 2
          do k = 1, n
             re(k - 1) = a(i + one, j, k)
             im(k - 1) = a(i + other, j, k)
          end do
          call line(re, im, to_re, to_im)
          do k = 1, n
             a(i + one, j, k) = to_re(k - 1)
             a(i + other, j, k) = to_im(k - 1)
          end do
       end do
    end do
  end subroutine along_z

  !> The transform of 64 complex numbers in three passes of four, each of which leaves its results in order (Stockham).
  pure subroutine line(re, im, to_re, to_im)
    double precision, intent(inout) :: re(0:n - 1), im(0:n - 1)
    double precision, intent(out) :: to_re(0:n - 1), to_im(0:n - 1)

    call pass(16, 1, re, im, to_re, to_im)
    call pass(4, 4, to_re, to_im, re, im)
    call last_pass(re, im, to_re, to_im)
  end subroutine line

  !> `lots` fourths that are `stride` numbers apart: the quarters of 4 `lots` become neighbours.
  pure subroutine pass(lots, stride, re, im, to_re, to_im)
    integer, intent(in) :: lots, stride
    double precision, intent(in) :: re(0:stride - 1, 0:lots - 1, 0:3), im(0:stride - 1, 0:lots - 1, 0:3)
    double precision, intent(out) :: to_re(0:stride - 1, 0:3, 0:lots - 1), to_im(0:stride - 1, 0:3, 0:lots - 1)
    double precision :: c1, s1, c2, s2, c3, s3, ar, ai, br, bi, cr, ci, dr, di, tr, ti
    integer :: p, q

    do p = 0, lots - 1
       c1 = cosine(p*stride)
       s1 = sine(p*stride)
       c2 = cosine(2*p*stride)
       s2 = sine(2*p*stride)
       c3 = cosine(3*p*stride)
       s3 = sine(3*p*stride)
       do q = 0, stride - 1
          ar = re(q, p, 0) + re(q, p, 2)
          ai = im(q, p, 0) + im(q, p, 2)
          cr = re(q, p, 0) - re(q, p, 2)
          ci = im(q, p, 0) - im(q, p, 2)
          br = re(q, p, 1) + re(q, p, 3)
          bi = im(q, p, 1) + im(q, p, 3)
          dr = im(q, p, 3) - im(q, p, 1)
          di = re(q, p, 1) - re(q, p, 3)
          to_re(q, 0, p) = ar + br
          to_im(q, 0, p) = ai + bi
          tr = cr - dr
          ti = ci - di
          to_re(q, 1, p) = c1*tr - s1*ti
          to_im(q, 1, p) = c1*ti + s1*tr
          tr = ar - br
          ti = ai - bi
          to_re(q, 2, p) = c2*tr - s2*ti
          to_im(q, 2, p) = c2*ti + s2*tr
          tr = cr + dr
          ti = ci + di
          to_re(q, 3, p) = c3*tr - s3*ti
          to_im(q, 3, p) = c3*ti + s3*tr
       end do
    end do
  end subroutine pass

  !> The same for one lot, 16 apart, without rotation.
  pure subroutine last_pass(re, im, to_re, to_im)
    double precision, intent(in) :: re(0:15, 0:3), im(0:15, 0:3)
    double precision, intent(out) :: to_re(0:15, 0:3), to_im(0:15, 0:3)
    double precision :: ar, ai, br, bi, cr, ci, dr, di
    integer :: q

    do q = 0, 15
       ar = re(q, 0) + re(q, 2)
       cr = re(q, 0) - re(q, 2)
       br = re(q, 1) + re(q, 3)
       di = re(q, 1) - re(q, 3)
       ai = im(q, 0) + im(q, 2)
       ci = im(q, 0) - im(q, 2)
       bi = im(q, 1) + im(q, 3)
       dr = im(q, 3) - im(q, 1)
       to_re(q, 0) = ar + br
       to_im(q, 0) = ai + bi
       to_re(q, 1) = cr - dr
       to_im(q, 1) = ci - di
       to_re(q, 2) = ar - br
       to_im(q, 2) = ai - bi
       to_re(q, 3) = cr + dr
       to_im(q, 3) = ci + di
    end do
  end subroutine last_pass
end module transform

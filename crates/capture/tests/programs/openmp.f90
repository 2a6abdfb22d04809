! Five sweeps over a grid, two parallel loops each, the second with a reduction.
! Arguments: the number of threads, and the file for the result.
program grid
  implicit none
  integer, parameter :: n = 128
  real(8) :: a(n, n), b(n, n), total
  common /fields/ a, b
  integer :: i, j, sweep, threads
  character(len=200) :: word
  call get_command_argument(1, word)
  read (word, *) threads
  a = 1
  do sweep = 1, 5
    !$omp parallel do private(i) schedule(static) num_threads(threads)
    do j = 2, n - 1
      do i = 2, n - 1
        b(i, j) = 0.25d0 * (a(i - 1, j) + a(i + 1, j) + a(i, j - 1) + a(i, j + 1)) + sweep
      end do
    end do
    total = 0
    !$omp parallel do private(i) schedule(static) reduction(+:total) num_threads(threads)
    do j = 2, n - 1
      do i = 2, n - 1
        a(i, j) = b(i, j)
        total = total + b(i, j)
      end do
    end do
  end do
  call get_command_argument(2, word)
  open (10, file=trim(word))
  write (10, '(F18.3)') total
end program

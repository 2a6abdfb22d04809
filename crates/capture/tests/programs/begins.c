/* 100 elements of data, read once each in main; built in all the ways in which programs begin. */
#include <stdio.h>

volatile long data[100];

int main(void)
{
   long sum = 0;
   for (int i = 0; i < 100; i++)
      sum += data[i];
   return sum != 0;
}

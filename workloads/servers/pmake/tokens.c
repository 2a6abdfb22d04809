/* From characters to tokens. */
#include "calc.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

void scan_begin(struct scanner *scanner, const char *text)
{
   scanner->rest = text;
   scan_next(scanner);
}

void scan_next(struct scanner *scanner)
{
   const char *at = scanner->rest;
   size_t length = 0;
   while (isspace((unsigned char)*at))
      at++;
   scanner->text[0] = 0;
   if (!*at) {
      scanner->token = END;
   } else if (isdigit((unsigned char)*at)) {
      char *end;
      scanner->value = strtod(at, &end);
      scanner->token = DIGITS;
      at = end;
   } else if (isalpha((unsigned char)*at)) {
      while (isalpha((unsigned char)at[length]))
         length++;
      scanner->token = length < sizeof scanner->text ? NAME : WRONG;
   } else {
      length = 1;
      scanner->token = strchr("+-*/^()", *at) ? SIGN : WRONG;
   }
   if (length && scanner->token != WRONG) {
      memcpy(scanner->text, at, length);
      scanner->text[length] = 0;
   }
   scanner->rest = at + length;
}

package python

import "github.com/megatron-ops/megatron-ops/internal/lazy"

// ownWords match what the interpreter says of an error in a program, as CPython's Objects and Python folders
// have it. A program that catches the exception logs these words without the exception's name.
var ownWords = lazy.New(`\bname '\w+' is not defined\b` +
	`|\b(?:local|free) variable '\w+'.* (?:referenced before assignment|where it is not associated with a value)\b` +
	`|'\w+' object (?:has no attribute '|is not (?:callable|iterable|subscriptable|an iterator)\b|does not support item )` +
	`|\b(?:list|tuple|string|pop) index out of range\b|\bpop from (?:an )?empty \w+\b|\b(?:division|modulo) by zero\b` +
	`|\bmissing \d+ required (?:positional|keyword-only) arguments?\b|\bgot (?:an unexpected keyword argument|multiple values for argument) '` +
	`|\btakes (?:from )?\d+ .*positional arguments? but \d+ (?:was|were) given\b|\bunsupported operand type\(s\) for\b` +
	`|\bnot supported between instances of '|\binvalid literal for int\(\) with base \d|\bcould not convert string to float\b` +
	`|\bunhashable type: '|\b(?:not enough|too many) values to unpack\b|\bstring indices must be integers\b`)

// named matches what the interpreter says of arguments and variables by their names.
var named = lazy.New(`\b(?:missing \d+ required (?:positional|keyword-only) arguments?|got an unexpected keyword argument|got multiple values for argument)\b` +
	`|^name '\w+' is not defined|\b(?:local|free) variable '\w+'`)

// OfNames reports whether a message is about names in a program's source: whatever the names contain says
// nothing about the failure.
func OfNames(message string) bool { return named.MatchString(message) }

// Says reports whether a text contains the interpreter's own words for an error in a program.
func Says(text string) bool { return ownWords.MatchString(text) }

// Alone reports whether a line is nothing but an exception's name, as of an exception without a message of which the
// traceback is missing.
func Alone(text string) bool { return nameAlone.MatchString(text) }

var nameAlone = lazy.On("Error|Exception", `^(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)$`)

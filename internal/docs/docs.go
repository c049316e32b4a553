// Package docs writes the reference pages under docs/ from the code that they describe:
// operations, the job specification, rules. A test fails if a page is out of date.
package docs

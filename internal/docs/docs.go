// Package docs writes the reference pages under docs/ from the code that they
// describe: operations, the job specification, rules. A page that drifts fails a
// test.
package docs

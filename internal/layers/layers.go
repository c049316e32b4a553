// Package layers holds the direction of imports: a lower room never imports an
// upper one. It is empty but for its test, which walks the import graph.
package layers

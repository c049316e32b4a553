// Package layers tests the direction of imports: a lower package never imports an upper
// one. It contains only its test, which walks the import graph.
package layers

package consent

// SizeText is sizeText for the tests.
var SizeText = sizeText

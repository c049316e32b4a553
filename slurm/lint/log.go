package lint

var logRules []Rule

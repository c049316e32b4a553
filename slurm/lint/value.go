package lint

var valueRules []Rule

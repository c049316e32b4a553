package lint

var syntaxRules []Rule

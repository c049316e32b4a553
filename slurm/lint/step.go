package lint

var stepRules []Rule

package lint

var megatronRules []Rule

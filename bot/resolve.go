package bot

// Resolve names the operation, or the command of the bot's own, that the first
// word after /megatron means, in English or Chinese.
func Resolve(word string) (name string, ok bool) { return resolve(word) }

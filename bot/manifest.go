package bot

// Scopes are what the bot token needs.
func Scopes(p Policy) []string {
	return []string{"commands", "chat:write"}
}

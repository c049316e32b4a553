package job

func (r *rendering) nodeCheck() string { return "" }

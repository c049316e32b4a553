package job

func (r *rendering) traces() string      { return "" }
func (r *rendering) batchGuards() string { return "" }
func (r *rendering) nodeGuards() string  { return "" }
func (r *rendering) marker() string      { return "" }

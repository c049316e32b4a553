package lang

import (
	"fmt"
	"time"
)

// Span formats a duration as people say it, in its two largest units.
func Span(d time.Duration) Text {
	return Text{EN: span(d, EN), ZH: span(d, ZH)}
}

// timeUnits are the units of a span, largest first.
var timeUnits = []struct {
	of   time.Duration
	name Text
}{
	{24 * time.Hour, Text{EN: "d", ZH: "天"}},
	{time.Hour, Text{EN: "h", ZH: "小时"}},
	{time.Minute, Text{EN: "min", ZH: "分钟"}},
	{time.Second, Text{EN: "s", ZH: "秒"}},
}

func span(d time.Duration, l Lang) string {
	i, seconds := 0, len(timeUnits)-1
	for i < seconds && d < timeUnits[i].of {
		i++
	}
	said := fmt.Sprintf("%d %s", d/timeUnits[i].of, timeUnits[i].name.In(l))
	if rest := d % timeUnits[i].of; i+1 < seconds && rest >= timeUnits[i+1].of { // nobody needs the seconds beside minutes
		said += fmt.Sprintf(" %d %s", rest/timeUnits[i+1].of, timeUnits[i+1].name.In(l))
	}
	return said
}

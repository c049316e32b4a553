package lang

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestATimeIsSaidInItsTwoLargestUnits(t *testing.T) {
	t.Parallel()
	for d, said := range map[time.Duration]Text{
		0:                            {EN: "0 s", ZH: "0 秒"},
		59 * time.Second:             {EN: "59 s", ZH: "59 秒"},
		61 * time.Second:             {EN: "1 min", ZH: "1 分钟"},
		time.Hour:                    {EN: "1 h", ZH: "1 小时"},
		2*time.Hour + time.Second:    {EN: "2 h", ZH: "2 小时"},
		90 * time.Minute:             {EN: "1 h 30 min", ZH: "1 小时 30 分钟"},
		25*time.Hour + time.Minute:   {EN: "1 d 1 h", ZH: "1 天 1 小时"},
		48*time.Hour + 2*time.Minute: {EN: "2 d", ZH: "2 天"},
	} {
		require.Equal(t, said, Span(d))
	}
}

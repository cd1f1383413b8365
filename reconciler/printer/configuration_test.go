package printer

import (
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/window"
)

// A window says whether it is open, and until when; a gate says when it passes.
func TestColumnsOfWindowsAndGates(t *testing.T) {
	meta := metaOf("nights", 1, time.Hour)
	windowOf := func(spec api.RolloutWindowSpec) Window {
		compiled, faults := window.Compile("nights", &spec)
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		return Window{&spec, compiled}
	}
	nights := api.WindowPeriod{Schedule: "0 22 * * 0", Duration: "4h", TimeZone: "Europe/Paris"}
	for name, test := range map[string]struct {
		columns []Column
		value   any
		want    string
	}{
		"closed": {Windows, windowOf(api.RolloutWindowSpec{Allow: []api.WindowPeriod{nights}, Overrun: api.OverrunStop}),
			"Name=nights Open=False Until=Sun 2026-03-01 22:00 CET Allow=0 22 * * 0 for 4h Europe/Paris Exclude= Age=60m (Overrun=Stop) (Source=apps/nights.yaml:3)"},
		"open": {Windows, windowOf(api.RolloutWindowSpec{Exclude: []api.WindowPeriod{{Schedule: "0 0 24 12 *", Duration: "48h"}}}),
			"Name=nights Open=True Until=Thu 2026-12-24 00:00 UTC Allow= Exclude=0 0 24 12 * for 48h Age=60m (Overrun=Finish) (Source=apps/nights.yaml:3)"},
		"a gate": {Gates, &api.RolloutGate{Spec: api.RolloutGateSpec{Soak: &api.SoakGate{Duration: "30m"}}}, "Name=nights Passes=available for 30m Age=60m (Source=apps/nights.yaml:3)"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := show(test.columns, Row{Meta: &meta, Value: test.value, Now: noon}); got != test.want {
				t.Errorf("%s\nwant\n%s", got, test.want)
			}
		})
	}
}

package window

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
)

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

// periods returns the periods SCHEDULE|DURATION|ZONE.
func periods(texts ...string) (all []api.WindowPeriod) {
	for _, t := range texts {
		p := strings.Split(t+"||", "|")
		all = append(all, api.WindowPeriod{Schedule: p[0], Duration: p[1], TimeZone: p[2]})
	}
	return all
}

func set(t *testing.T, specs ...api.RolloutWindowSpec) (s Set) {
	t.Helper()
	for i, spec := range specs {
		w, faults := Compile(string(rune('a'+i)), &spec)
		if len(faults) > 0 {
			t.Fatalf("%v", faults)
		}
		s = append(s, w)
	}
	return s
}

func TestAt(t *testing.T) {
	saturdays := api.RolloutWindowSpec{Allow: periods("0 22 * * 6|2h|Europe/Paris")} // 21:00 UTC in winter, 20:00 in summer
	weekdays := api.RolloutWindowSpec{Allow: periods("0 9 * * 1-5|8h|UTC")}
	december := api.RolloutWindowSpec{Exclude: periods("0 0 20 12 *|336h|")} // until 3 January
	minute := api.RolloutWindowSpec{Allow: periods("0 3 * * *|1m|")}
	for name, test := range map[string]struct {
		set  []api.RolloutWindowSpec
		now  string
		want string // open or closed by WINDOW, and until when
	}{
		"no window":                            {nil, "2026-11-28T12:00:00Z", "open"},
		"before it opens":                      {[]api.RolloutWindowSpec{saturdays}, "2026-11-28T20:59:59Z", "closed by a until Sat 2026-11-28 22:00 CET"},
		"at the opening":                       {[]api.RolloutWindowSpec{saturdays}, "2026-11-28T21:00:00Z", "open until Sun 2026-11-29 00:00 CET"},
		"started inside":                       {[]api.RolloutWindowSpec{saturdays}, "2026-11-28T22:30:00Z", "open until Sun 2026-11-29 00:00 CET"},
		"at the end":                           {[]api.RolloutWindowSpec{saturdays}, "2026-11-28T23:00:00Z", "closed by a until Sat 2026-12-05 22:00 CET"},
		"in summer":                            {[]api.RolloutWindowSpec{saturdays}, "2026-07-04T20:00:00Z", "open until Sun 2026-07-05 00:00 CEST"},
		"either allows":                        {[]api.RolloutWindowSpec{saturdays, weekdays}, "2026-11-30T10:00:00Z", "open until Mon 2026-11-30 17:00 UTC"},
		"the first that opens":                 {[]api.RolloutWindowSpec{saturdays, weekdays}, "2026-11-29T10:00:00Z", "closed by a until Mon 2026-11-30 09:00 UTC"},
		"an exclusion wins":                    {[]api.RolloutWindowSpec{weekdays, december}, "2026-12-21T10:00:00Z", "closed by b until Mon 2027-01-04 09:00 UTC"},
		"until the exclusion":                  {[]api.RolloutWindowSpec{december}, "2026-12-01T10:00:00Z", "open until Sun 2026-12-20 00:00 UTC"},
		"only excluded, then open":             {[]api.RolloutWindowSpec{december}, "2026-12-25T10:00:00Z", "closed by a until Sun 2027-01-03 00:00 UTC"},
		"a minute":                             {[]api.RolloutWindowSpec{minute}, "2026-11-28T03:00:59Z", "open until Sat 2026-11-28 03:01 UTC"},
		"a minute is over":                     {[]api.RolloutWindowSpec{minute}, "2026-11-28T03:01:00Z", "closed by a until Sun 2026-11-29 03:00 UTC"},
		"another one excludes what is allowed": {[]api.RolloutWindowSpec{weekdays, {Allow: periods("0 0 * * 6|2h|"), Exclude: periods("0 2 * * *|22h|")}}, "2026-11-30T10:00:00Z", "closed by b until Sat 2026-12-05 00:00 UTC"},
	} {
		t.Run(name, func(t *testing.T) {
			s := set(t, test.set...).At(at(test.now))
			got := "open"
			if !s.Open {
				got = "closed by " + s.By.Name()
			}
			if !s.Until.IsZero() {
				got += " until " + s.Until.Format("Mon 2006-01-02 15:04 MST")
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestCompileSaysWhatIsWrong(t *testing.T) {
	for name, test := range map[string]struct {
		spec api.RolloutWindowSpec
		want string
	}{
		"nothing":                           {api.RolloutWindowSpec{}, `:  has neither allow nor exclude, and so no effect; write when new content may come`},
		"four fields":                       {api.RolloutWindowSpec{Allow: periods("0 22 * *|2h|")}, `allow: schedule "0 22 * *" is no cron expression (expected exactly 5 fields, found 4: [0 22 * *]); write five fields, such as "0 22 * * 6" for Saturdays at 22:00`},
		"an hour of 24":                     {api.RolloutWindowSpec{Allow: periods("0 24 * * *|2h|")}, `allow: schedule "0 24 * * *" is no cron expression (end of range (24) above maximum (23): 24); write five fields, such as "0 22 * * 6" for Saturdays at 22:00`},
		"a descriptor":                      {api.RolloutWindowSpec{Allow: periods("@every 1h|2h|")}, `allow: schedule "@every 1h" is no cron expression (parser does not accept descriptors: @every 1h); write five fields, such as "0 22 * * 6" for Saturdays at 22:00`},
		"a zone inside":                     {api.RolloutWindowSpec{Allow: periods("TZ=UTC|2h|")}, `allow: schedule the time zone has a field of its own, timeZone; write five fields, such as "0 22 * * 6" for Saturdays at 22:00`},
		"an unknown zone":                   {api.RolloutWindowSpec{Exclude: periods("0 22 * * 6|2h|Europe/Pariss")}, `exclude: timeZone "Europe/Pariss" is no time zone; write one such as Europe/Paris, or leave it out for UTC`},
		"the machine's":                     {api.RolloutWindowSpec{Exclude: periods("0 22 * * 6|2h|Local")}, `exclude: timeZone "Local" is no time zone; write one such as Europe/Paris, or leave it out for UTC`},
		"a bad duration":                    {api.RolloutWindowSpec{Allow: periods("0 22 * * 6|2 hours|")}, `allow: duration "2 hours" is no duration; write one such as 2h or 90m`},
		"too short":                         {api.RolloutWindowSpec{Allow: periods("0 22 * * 6|30s|")}, `allow: duration 30s must be at least 1m and at most 8784h`},
		"the 30th of Feb.":                  {api.RolloutWindowSpec{Allow: periods("0 0 30 2 *|2h|")}, `allow: schedule "0 0 30 2 *" is a time that never comes; change the day or the month`},
		"always excluded":                   {api.RolloutWindowSpec{Allow: periods("0 22 * * 6|2h|"), Exclude: periods("0 0 * * 6,0|24h|")}, `:  never opens: no time is in allow and not in exclude; change one of them`},
		"always excluded, minute by minute": {api.RolloutWindowSpec{Exclude: periods("* * * * *|1m|")}, `:  never opens: no time is in allow and not in exclude; change one of them`},
	} {
		t.Run(name, func(t *testing.T) {
			_, faults := Compile("w", &test.spec)
			if len(faults) != 1 {
				t.Fatalf("faults: %v", faults)
			}
			if got := faults[0].Path + ": " + faults[0].Field + " " + faults[0].Message; got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// A period whose beginning the change to summer time skips is skipped on that day; one that the change to winter time
// repeats begins twice; durations are those of a clock that is not set.
func TestChangesOfTheClock(t *testing.T) {
	nights := api.RolloutWindowSpec{Allow: periods("30 2 * * *|2h|Europe/Paris")}
	for name, test := range map[string]struct{ now, want string }{
		"before spring":            {"2026-03-28T04:00:00Z", "the window a is closed until Mon 2026-03-30 02:30 CEST"},
		"spring, no 02:30":         {"2026-03-29T01:45:00Z", "the window a is closed until Mon 2026-03-30 02:30 CEST"},
		"autumn, the first 02:30":  {"2026-10-25T00:31:00Z", "open until Sun 2026-10-25 03:30 CET"},
		"autumn, the second 02:30": {"2026-10-25T01:31:00Z", "open until Sun 2026-10-25 03:30 CET"},
		"autumn, open again":       {"2026-10-25T02:30:00Z", "open until Sun 2026-10-25 04:30 CET"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := set(t, nights).At(at(test.now)).String(); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// Windows that match nothing have no effect; several for the same clusters have to be open together.
func TestCheck(t *testing.T) {
	of := func(labels ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{labels[0]: labels[1]}}
	}
	fleet := Fleet{
		Placements: []Labelled{{"crp/web", map[string]string{"team": "a"}}, {"crp/db", nil}},
		Clusters:   []Labelled{{"paris", map[string]string{"region": "eu"}}, {"tokyo", map[string]string{"region": "asia"}}},
	}
	nights := api.RolloutWindowSpec{Allow: periods("0 22 * * *|2h|")}
	noNights := api.RolloutWindowSpec{Exclude: periods("0 21 * * *|4h|")}
	eu := noNights
	eu.ClusterSelector = of("region", "eu")
	asia := nights
	asia.ClusterSelector = of("region", "asia")
	lost := nights
	lost.ClusterSelector, lost.PlacementSelector = of("region", "mars"), of("team", "b")
	for name, test := range map[string]struct {
		windows []api.RolloutWindowSpec
		want    string
	}{
		"one":                   {[]api.RolloutWindowSpec{nights}, ""},
		"never open together":   {[]api.RolloutWindowSpec{nights, noNights}, "b : the windows a and b are never open together, so crp/web would never get new content on paris; change their periods or selectors"},
		"only on some clusters": {[]api.RolloutWindowSpec{nights, eu}, "b : the windows a and b are never open together, so crp/web would never get new content on paris; change their periods or selectors"},
		"on different clusters": {[]api.RolloutWindowSpec{eu, asia}, ""},
		"for nothing":           {[]api.RolloutWindowSpec{lost}, "a placementSelector: matches no placement of the commit, so the window has no effect; correct the labels, or remove the window\na clusterSelector: matches no cluster of the commit, so the window has no effect; correct the labels, or remove the window"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range Check(set(t, test.windows...), fleet) {
				got = append(got, p.Window.Name()+" "+p.Field+": "+p.Message)
			}
			if strings.Join(got, "\n") != test.want {
				t.Errorf("got  %s\nwant %s", strings.Join(got, "\n"), test.want)
			}
		})
	}
}

package reconciler

import "fmt"

func (r *orderRun) check(o Order) (string, error) {
	names := map[string]bool{}
	if o.Subject == "" {
		for name := range r.agents.members {
			names[name] = true
		}
		r.loadNewest = r.loadNewest || r.newestFatal
	} else {
		subject, err := r.subjectOf(o)
		if err != nil {
			return "", err
		}
		for name, works := range r.works {
			for _, w := range works {
				names[name] = names[name] || w.Placement == subject.Placement
			}
		}
	}
	n := 0
	for name, requested := range names {
		if m := r.agents.members[name]; requested && m != nil {
			m.member.Check()
			if r.declares(name) { // the others are leaving the fleet
				n++
			}
		}
	}
	if n == 1 {
		return "1 cluster compares its objects with Git now", nil
	}
	return fmt.Sprintf("%d clusters compare their objects with Git now", n), nil
}

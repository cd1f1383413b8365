package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/gitfleet/gitfleet/test/checkout"
	"github.com/gitfleet/gitfleet/test/golden"
)

const (
	deployed  = "../../deploy/prometheus"
	metrics   = "../../docs/metrics.md"
	runbooks  = "../../docs/runbooks"
	operating = "../../docs/operating.md"
)

// common matches metrics that are not gitfleet's own: that of Prometheus about a target, and those of
// the Go runtime.
var common = regexp.MustCompile(`\b(?:up\{job="gitfleet"|go_gc_[a-z_]+\{fleet)`)

// promtool runs Prometheus' tool in a directory.
func promtool(t *testing.T, dir string, args ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("building promtool takes minutes the first time")
	}
	_, tool, err := checkout.Prometheus(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), tool, args...)
	command.Dir = dir
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// A ruleFile is what we read of a file of rules.
type ruleFile struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert, Expr string
			Labels      map[string]string
			Annotations map[string]string
		}
	}
}

func readRules(t *testing.T) (ruleFile, string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deployed, "rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var rules ruleFile
	if err := yaml.Unmarshal(text, &rules); err != nil {
		t.Fatal(err)
	}
	return rules, string(text)
}

// The rules and the example configuration are valid, and the alerts fire when they
// should and only then.
func TestAlertRulesPassTheirPromtoolTests(t *testing.T) {
	promtool(t, deployed, "check", "rules", "--lint=all", "--lint-fatal", "rules.yaml")
	promtool(t, deployed, "check", "config", "prometheus.yaml")
	promtool(t, deployed, "test", "rules", "rules_test.yaml")
}

// Each alert has a test in which it fires and then ends.
func TestAlertsFireAndEnd(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(deployed, "rules_test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Tests []struct {
			AlertRuleTest []struct {
				EvalTime  string `yaml:"eval_time"`
				Alertname string
				ExpAlerts []any `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	ends := map[string]bool{}
	for _, test := range file.Tests {
		fired := map[string]time.Duration{} // first
		for _, last := range []bool{false, true} {
			for _, c := range test.AlertRuleTest {
				at, err := time.ParseDuration(c.EvalTime)
				if err != nil {
					t.Fatal(err)
				}
				since, has := fired[c.Alertname]
				switch {
				case !last && len(c.ExpAlerts) > 0 && (!has || at < since):
					fired[c.Alertname] = at
				case last && has && at > since && len(c.ExpAlerts) == 0:
					ends[c.Alertname] = true
				}
			}
		}
	}
	rules, _ := readRules(t)
	for _, group := range rules.Groups {
		for _, r := range group.Rules {
			if !ends[r.Alert] {
				t.Errorf("%s: no test has it fire and end", r.Alert)
			}
		}
	}
}

// Each alert has a test, a severity, texts, a line in the documentation, and a runbook whose first
// line is a command; it uses documented metrics.
func TestAlertsAreComplete(t *testing.T) {
	exist, err := documented(metrics)
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile(filepath.Join(deployed, "rules_test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(operating)
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]bool{}
	rules, _ := readRules(t)
	for _, group := range rules.Groups {
		for _, r := range group.Rules {
			runbook := r.Alert + ".md"
			pages[runbook] = true
			if s := r.Labels["severity"]; s != "critical" && s != "warning" {
				t.Errorf("%s: the severity is %q", r.Alert, s)
			}
			for _, text := range []string{"summary", "description"} {
				if r.Annotations[text] == "" {
					t.Errorf("%s has no %s", r.Alert, text)
				}
			}
			if url := r.Annotations["runbook_url"]; !strings.HasSuffix(url, "/docs/runbooks/"+runbook) {
				t.Errorf("%s: the runbook is %s", r.Alert, url)
			}
			text, err := os.ReadFile(filepath.Join(runbooks, runbook))
			if begin := "# " + r.Alert + "\n\n```sh\ngitfleet "; err != nil || !strings.HasPrefix(string(text), begin) {
				t.Errorf("%s: the runbook does not begin with the command to type: %v", r.Alert, err)
			}
			names := metricsIn(r.Expr)
			if len(names) == 0 && !common.MatchString(r.Expr) {
				t.Errorf("%s uses no metric", r.Alert)
			}
			for _, name := range names {
				if !exist[name] {
					t.Errorf("%s uses %s, which is not documented", r.Alert, name)
				}
			}
			if !strings.Contains(string(tests), "alertname: "+r.Alert+"\n        exp_alerts:") {
				t.Errorf("%s: no test has it fire", r.Alert)
			}
			if !strings.Contains(string(page), "["+r.Alert+"](runbooks/"+r.Alert+".md) | "+r.Labels["severity"]+" |") {
				t.Errorf("%s, or its severity, is not in the table of %s", r.Alert, operating)
			}
		}
	}
	entries, err := os.ReadDir(runbooks)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !pages[e.Name()] {
			t.Errorf("%s is the runbook of no alert", e.Name())
		}
	}
}

// The PrometheusRule for the Prometheus Operator is generated from the file of rules, and the
// Helm chart has a copy of that.
func TestPrometheusRuleIsGenerated(t *testing.T) {
	_, text := readRules(t)
	_, groups, found := strings.Cut(text, "\ngroups:\n")
	if !found {
		t.Fatal("the file of rules has no groups")
	}
	var out strings.Builder
	out.WriteString("# Written by go test ./test/monitoring -update, from rules.yaml.\n" +
		"apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: gitfleet\n  labels:\n    app.kubernetes.io/name: gitfleet\nspec:\n  groups:\n")
	for line := range strings.Lines(groups) {
		out.WriteString("  " + line)
	}
	golden.File(t, filepath.Join(deployed, "prometheusrule.yaml"), out.String())
	golden.File(t, "../../deploy/helm/gitfleet/files/rules.yaml", text)
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/test/golden"
)

// load reads a configuration as run does.
func load(t *testing.T, file string, args ...string) (Config, error) {
	t.Helper()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	defaults := defaultConfig()
	defaults.bind(flags)
	if err := flags.Parse(args); err != nil {
		return Config{}, err
	}
	if file == "" {
		return loadConfig("", flags)
	}
	path := filepath.Join(t.TempDir(), "gitfleet.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	return loadConfig(path, flags)
}

const smallest = `
source: {url: https://git.example.com/fleet}
members: {kubeconfigDir: /etc/members}
`

// fields are the keys of all settings there can be in the file.
func fields(prefix string, t reflect.Type) []string {
	var keys []string
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "":
		case f.Type.Kind() == reflect.Struct && strings.HasSuffix(f.Type.Name(), "Config"):
			keys = append(keys, fields(prefix+name+".", f.Type)...)
		default:
			keys = append(keys, prefix+name)
		}
	}
	return keys
}

// Whatever the file can say a flag can say, and the other way round.
func TestEverySettingIsAFlag(t *testing.T) {
	var c Config
	var keys, flags []string
	for _, s := range c.settings() {
		keys = append(keys, s.key)
		flags = append(flags, s.flag)
	}
	want := fields("", reflect.TypeFor[Config]())
	slices.Sort(keys)
	slices.Sort(want)
	if !slices.Equal(keys, want) {
		t.Errorf("the table has\n%v\nand the file\n%v", keys, want)
	}
	slices.Sort(flags)
	if n := len(slices.Compact(flags)); n != len(keys) {
		t.Errorf("%d settings have %d flags", len(keys), n)
	}
}

// A setting reaches its field by its key as by its flag, and the flag wins.
func TestFlagsWinOverTheFile(t *testing.T) {
	c, err := load(t, smallest+`
limits: {fileSize: 2Mi, files: 7, buildTime: 5s}
webhook: {secretEnv: FROM_FILE}
`, "--limit-files", "9", "--webhook-secret-env", "FROM_FLAG", "--limit-fetch-bytes", "1Gi")
	if err != nil {
		t.Fatal(err)
	}
	o, g := c.hub(), c.git(nil)
	if o.Limits.FileSize != 2<<20 || o.Limits.Files != 9 || o.Limits.BuildTime != 5*time.Second || g.Limits.FetchBytes != 1<<30 {
		t.Errorf("limits are %+v and %+v", o.Limits, g.Limits)
	}
	if c.Webhook.SecretEnv != "FROM_FLAG" {
		t.Errorf("webhook is %+v", c.Webhook)
	}
	if d := defaultConfig(); o.Limits.Documents != d.Limits.Documents || o.Limits.Documents == 0 {
		t.Errorf("what nobody set is %d", o.Limits.Documents)
	}
}

// A file that may be read as a manifest may be read from Git.
func TestGitReadsWhatTheHubMayRead(t *testing.T) {
	for text, want := range map[string]int64{"1Mi": 16 << 20, "40Mi": 40 << 20} {
		c, err := load(t, smallest, "--limit-file-size", text)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.git(nil).Limits.FileBytes; got != want {
			t.Errorf("with files of %s Git reads %d bytes, want %d", text, got, want)
		}
	}
}

func TestSignaturesAreDemanded(t *testing.T) {
	ways := map[string]struct {
		file string
		args []string
	}{
		"file": {file: `
source:
  url: https://git.example.com/fleet
  signatures:
    openPGP: [/keys/a, /keys/b]
    allowedSigners: /keys/signers
    since: c0ffee6789012345678901234567890123456789
    allowRewrite: true
    paths:
    - {signers: [ada]}
    - {path: apps/web, signers: [ada, bob]}
members: {kubeconfigDir: /etc/members}
`},
		"flags": {file: smallest, args: []string{
			"--signatures-openpgp", "/keys/a", "--signatures-openpgp", "/keys/b", "--signatures-allowed-signers", "/keys/signers",
			"--signatures-since", "c0ffee6789012345678901234567890123456789", "--signatures-allow-rewrite",
			"--signatures-path", "=ada", "--signatures-path", "apps/web=ada,bob",
		}},
	}
	want := &gitsource.Signatures{
		OpenPGP: []string{"/keys/a", "/keys/b"}, AllowedSigners: "/keys/signers",
		Since: "c0ffee6789012345678901234567890123456789", AllowRewrite: true,
		Paths: []gitsource.SignedPath{{Signers: []string{"ada"}}, {Path: "apps/web", Signers: []string{"ada", "bob"}}},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			c, err := load(t, way.file, way.args...)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.git(nil).Signatures; !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v", got)
			}
		})
	}
	c, err := load(t, smallest)
	if err != nil || c.git(nil).Signatures != nil {
		t.Errorf("nobody asked, and %+v is demanded (%v)", c.git(nil).Signatures, err)
	}
}

// Whoever asks for signatures and does not say whose must not get none.
func TestWrongConfigurationIsRefused(t *testing.T) {
	tests := map[string]struct {
		file string
		args []string
		says []string
	}{
		"signatures of nobody":         {file: strings.Replace(smallest, "fleet}", "fleet, signatures: {}}", 1), says: []string{"source.signatures: set openPGP or allowedSigners"}},
		"unknown field":                {file: smallest + "webhok: {}", says: []string{`unknown field "webhok"`}},
		"unknown signature":            {file: strings.Replace(smallest, "fleet}", "fleet, signatures: {opnePGP: [a]}}", 1), says: []string{`source.signatures: json: unknown field "opnePGP"`}},
		"path without signers":         {file: smallest, args: []string{"--signatures-path", "apps"}, says: []string{`"apps" is not PATH=SIGNER,SIGNER`}},
		"two webhook secrets":          {file: smallest + "webhook: {secretFile: a, secretEnv: b}", says: []string{"webhook.secretFile: set only one of secretFile and secretEnv (--webhook-secret-file)"}},
		"a sweep of less than nothing": {file: smallest, args: []string{"--sweep-interval", "-1h"}, says: []string{"members.sweepInterval: must be more than zero (--sweep-interval)"}},
		"no limit":                     {file: smallest + "limits: {depth: 0, buildOutput: -1}", says: []string{"limits.depth: must be more than zero (--limit-depth)", "limits.buildOutput: must be more than zero"}},
		"no size":                      {file: smallest + "limits: {fileSize: big}", says: []string{`"big" is no size such as 512Ki or 1Mi`}},
		"half a byte":                  {file: smallest, args: []string{"--limit-file-size", "0.5"}, says: []string{"no whole number of bytes"}},
		"ssh without known host":       {file: strings.Replace(smallest, "https://git.example.com/fleet", "ssh://git.example.com/fleet", 1), says: []string{"source.sshKeyFile: must be set for ssh:// (--ssh-key-file)", "source.sshKnownHosts: must be set", "(--ssh-known-hosts)"}},
		"two references":               {file: smallest, args: []string{"--branch", "a", "--tag", "b"}, says: []string{"source: set only one of branch, tag, semver and commit"}},
		"polled too often":             {file: smallest, args: []string{"--interval", "10ms"}, says: []string{"source.interval: must be at least 1s, is 10ms; use the webhook for speed (--interval)"}},
		"path outside":                 {file: smallest, args: []string{"--path", "../other"}, says: []string{`source.path "../other": must be relative`}},
		"unknown conditions":           {file: smallest + "status: {conditions: old}", says: []string{`status.conditions: "old" is neither current nor documented (--status-conditions)`}},
		"hardly any history":           {file: smallest + "history: {maxSize: 1Ki}", says: []string{"history.maxSize: must be at least 64Ki (--history-max-size)"}},
		"nothing":                      {says: []string{"source.url: set the repository that is the hub (--url)", "members: say where the kubeconfigs of the members are"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, test.file, test.args...)
			for _, want := range test.says {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v\nwant %s", err, want)
				}
			}
		})
	}
}

// The page of all settings says what the program does.
func TestSettingsAreDocumented(t *testing.T) {
	const page = "../../docs/configuration.md"
	const begin, end = "<!-- settings: written by go test ./cmd/gitfleet -update -->\n", "<!-- end of settings -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the settings", page)
	}
	golden.File(t, page, before+begin+settingsTable()+end+after)
}

// sections are headings for the settings, by the first part of their keys.
var sections = []struct{ prefix, title string }{
	{"", "General"},
	{"server.", "Access"},
	{"source.", "Repository"},
	{"source.signatures.", "Signatures"},
	{"webhook.", "Webhook"},
	{"limits.", "Limits"},
	{"members.", "Members"},
	{"history.", "History"},
	{"status.", "Status"},
	{"rollout.", "Rollout"},
}

func settingsTable() string {
	c := defaultConfig()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.bind(flags)
	var b strings.Builder
	for _, section := range sections {
		fmt.Fprintf(&b, "\n### %s\n\n| Key | Flag | Default | Meaning |\n|---|---|---|---|\n", section.title)
		for _, s := range c.settings() {
			if s.key[:strings.LastIndex(s.key, ".")+1] != section.prefix {
				continue
			}
			value := ""
			if v := flags.Lookup(s.flag).DefValue; v != "" && v != "[]" && v != "false" && s.key != "source.githubAppInstallation" {
				value = "`" + v + "`"
			}
			fmt.Fprintf(&b, "| `%s` | `--%s` | %s | %s |\n", s.key, s.flag, value, strings.ReplaceAll(s.usage, "|", `\|`))
		}
	}
	b.WriteString("\n")
	return b.String()
}

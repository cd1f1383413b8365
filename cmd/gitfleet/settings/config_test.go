package settings

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/hub/grant"
	"github.com/gitfleet/gitfleet/gitsource/remote"
	"github.com/gitfleet/gitfleet/reconciler/gate"
	"github.com/gitfleet/gitfleet/test/golden"
)

// load reads a configuration as run does.
func load(t *testing.T, file string, args ...string) (Config, error) {
	t.Helper()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	var config string
	Bind(flags, &config, "")
	if err := flags.Parse(args); err != nil {
		return Config{}, err
	}
	if file == "" {
		return Load("", flags)
	}
	path := filepath.Join(t.TempDir(), "gitfleet.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(path, flags)
}

const smallest = `
source: {url: https://git.example.com/fleet}
members: {kubeconfigDir: /etc/members}
`

// Every setting has a usage and a key of its own, and every flag stands for a setting.
func TestEveryFieldIsASetting(t *testing.T) {
	var c Config
	var keys []string
	for _, s := range c.settings() {
		keys = append(keys, s.key)
		if s.usage == "" {
			t.Errorf("%s has no usage", s.key)
		}
	}
	if unique := slices.Compact(slices.Sorted(slices.Values(keys))); len(unique) != len(keys) {
		t.Errorf("a key stands for two settings: %v", keys)
	}
	for _, own := range settingFlags {
		if !slices.Contains(keys, own.key) {
			t.Errorf("--%s is for %s, which is no setting", own.flag, own.key)
		}
	}
}

// notSecret are the settings that mention a secret in their keys or usages, and neither are one nor
// name one.
var notSecret = []string{
	"hosts", "gates.servers", // their fields are found, which TestHosts and TestGateServers test
	"source.username", "source.sshKnownHosts", "members.secretNamespace", "drift.kinds", "decryption.paths", "decryption.service", "highAvailability.lease.name", "highAvailability.lease.namespace",
}

// unnamedSecrets returns the settings that seem to be or to name a secret, but that Config.Named
// does not find, so that gitfleet bugreport would not remove the secret.
func unnamedSecrets(all []setting) []string {
	inKey, inUsage := regexp.MustCompile("(?i)token|passw|passphrase|secret|credential|key"), regexp.MustCompile(`(?i)token|passw|passphrase|secret|credential|\bkey\b`)
	var keys []string
	for _, s := range all {
		name := s.key[strings.LastIndex(s.key, ".")+1:]
		_, isText := s.value.(*string)
		named := isText && (strings.HasSuffix(name, "File") || strings.HasSuffix(name, "Env"))
		if !named && !slices.Contains(notSecret, s.key) && (inKey.MatchString(name) || inUsage.MatchString(s.usage)) {
			keys = append(keys, s.key)
		}
	}
	return keys
}

// The key of a setting that names a secret ends in File or Env.
func TestKeysOfSecrets(t *testing.T) {
	var c Config
	if keys := unnamedSecrets(c.settings()); keys != nil {
		t.Errorf("the keys of %v must end in File or Env; those that have nothing to do with secrets belong into notSecret", keys)
	}
	var wrong struct {
		ChatKey   string   `key:"chatKey" usage:"how to write to the chat"`
		Chat      string   `key:"chat" usage:"token for the chat"`
		TokenFile []string `key:"tokenFile" usage:"files with tokens"`
		Room      string   `key:"room" usage:"room to write to"`
		RoomFile  string   `key:"roomFile" usage:"file with the token of the room"`
	}
	want := []string{"chat.chatKey", "chat.chat", "chat.tokenFile"}
	if keys := unnamedSecrets(settingsOf("chat.", reflect.ValueOf(&wrong).Elem())); !slices.Equal(keys, want) {
		t.Errorf("the keys of %v are wrong, want %v", keys, want)
	}
}

// Each setting sets its field from the file and from the command line, which takes precedence.
func TestFlagsWinOverTheFile(t *testing.T) {
	c, err := load(t, smallest+`
limits: {fileSize: 2Mi, files: 7}
limits.buildTime: 5s
webhook: {secretEnv: FROM_FILE}
`, "--set", "limits.files=9", "--set", "webhook.secretEnv=FROM_FLAG", "--set", "limits.fetchBytes=1Gi")
	if err != nil {
		t.Fatal(err)
	}
	o, g := c.HubOptions(), c.GitConfig(nil)
	if o.Limits.FileSize != 2<<20 || o.Limits.Files != 9 || o.Limits.BuildTime != 5*time.Second || g.Limits.FetchBytes != 1<<30 {
		t.Errorf("limits are %+v and %+v", o.Limits, g.Limits)
	}
	if c.Webhook.SecretEnv != "FROM_FLAG" {
		t.Errorf("webhook is %+v", c.Webhook)
	}
	if d := Default(); o.Limits.Documents != d.Limits.Documents || o.Limits.Documents == 0 {
		t.Errorf("what nobody set is %d", o.Limits.Documents)
	}
}

// Of numbers, only durations that can be switched off may be zero.
func TestDurationsThatMayBeZero(t *testing.T) {
	c, err := load(t, smallest, "--set", "members.sweepInterval=0", "--set", "rollout.availableTimeout=0")
	if err != nil || c.Members.Sweep() >= 0 || c.Rollout.AvailableTimeout.Duration != 0 {
		t.Errorf("the intervals are %v and %v, %v", c.Members.Sweep(), c.Rollout.AvailableTimeout, err)
	}
	if _, err := load(t, smallest, "--set", "members.timeout=0"); err == nil {
		t.Error("no request to a member may take any time")
	}
}

// A file that may be loaded as a manifest may also be read from Git.
func TestGitReadsWhatTheHubMayRead(t *testing.T) {
	for text, want := range map[string]int64{"1Mi": 16 << 20, "40Mi": 40 << 20} {
		c, err := load(t, smallest, "--set", "limits.fileSize="+text)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.GitConfig(nil).Limits.FileBytes; got != want {
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
    - {path: apps/web, signers: [ada, bob], namespaces: [web], kinds: [Namespace, ConfigMap], placements: [crp/web], sharedBases: [apps/web/base]}
members: {kubeconfigDir: /etc/members}
`},
		"flags": {file: smallest, args: []string{
			"--set", "source.signatures.openPGP=/keys/a", "--set", "source.signatures.openPGP=/keys/b", "--set", "source.signatures.allowedSigners=/keys/signers",
			"--set", "source.signatures.since=c0ffee6789012345678901234567890123456789", "--set", "source.signatures.allowRewrite=true",
			"--set", "source.signatures.paths==ada", "--set", "source.signatures.paths=apps/web=ada,bob;namespaces=web;kinds=Namespace,ConfigMap;placements=crp/web;sharedBases=apps/web/base",
		}},
	}
	want := &gitsource.Signatures{
		OpenPGP: []string{"/keys/a", "/keys/b"}, AllowedSigners: "/keys/signers",
		Since: "c0ffee6789012345678901234567890123456789", AllowRewrite: true,
		Paths: []gitsource.SignedPath{
			{Grant: grant.Grant{Field: "source.signatures.paths[0]"}, Signers: []string{"ada"}},
			{Grant: grant.Grant{
				Path: "apps/web", Field: "source.signatures.paths[1]", Namespaces: []string{"web"}, Kinds: []string{"Namespace", "ConfigMap"},
				Placements: []string{"crp/web"}, SharedBases: []string{"apps/web/base"},
			}, Signers: []string{"ada", "bob"}},
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			c, err := load(t, way.file, way.args...)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.GitConfig(nil).Signatures; !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v", got)
			}
			if got := c.HubOptions().Grants; !reflect.DeepEqual(got, grant.Set{&want.Paths[0].Grant, &want.Paths[1].Grant}) {
				t.Errorf("got %+v", got)
			}
			c.Source.Signatures = c.Source.Signatures.Unverified()
			if c.GitConfig(nil).Signatures != nil || len(c.HubOptions().Grants) != 2 {
				t.Error("without verification, other files may produce more")
			}
		})
	}
	c, err := load(t, smallest)
	if err != nil || c.GitConfig(nil).Signatures != nil {
		t.Errorf("nobody asked, and %+v is demanded (%v)", c.GitConfig(nil).Signatures, err)
	}
}

// The servers that gates may ask are set in the file or on the command line, and the secrets that they name are found.
func TestGateServers(t *testing.T) {
	for name, way := range map[string]struct {
		file string
		args []string
	}{
		"file":  {file: smallest + "\ngates:\n  servers:\n  - {url: 'https://prom/eu', bearerFile: /keys/prom}\n  - {url: 'http://127.0.0.1:9090'}\n"},
		"flags": {file: smallest, args: []string{"--set", "gates.servers=https://prom/eu;bearerFile=/keys/prom", "--set", "gates.servers=http://127.0.0.1:9090"}},
	} {
		c, err := load(t, way.file, way.args...)
		if err != nil {
			t.Fatal(err)
		}
		want := []gate.Server{{URL: "https://prom/eu", Auth: remote.Auth{Bearer: remote.SecretSource{File: "/keys/prom"}}}, {URL: "http://127.0.0.1:9090"}}
		if got := c.GateConfig().Servers; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v", name, got)
		}
		if found := c.Named("File"); !slices.Contains(found, Named{"gates.servers[0].bearerFile", "/keys/prom"}) {
			t.Errorf("%s: found %v", name, found)
		}
		if refuses := c.HubOptions().GateServers; refuses == nil || !refuses.Refuse || len(refuses.URLs) != 2 {
			t.Errorf("%s: commits are checked with %+v", name, refuses)
		}
	}
	if o := Default().HubOptions(); o.GateServers != nil {
		t.Errorf("without a configuration, commits are checked with %+v", o.GateServers)
	}
	for text, want := range map[string]string{
		"[{url: prometheus}]":                               `gates.servers[0].url: "prometheus" is not an address such as https://prometheus.example.com`,
		"[{url: 'https://a'}, {url: 'https://a'}]":          "https://a is there twice",
		"[{url: 'https://a?x=1'}]":                          "has a query",
		"[{url: 'https://u:p@a'}]":                          "it has credentials",
		"[{url: 'http://a', bearerFile: b}]":                "must be https://, since credentials are sent",
		"[{url: 'https://a', bearerFile: b, bearerEnv: c}]": "set only one of passwordFile",
		"[{url: 'https://a', passwordFile: b}]":             "gates.servers[0].username: must be set with a password",
		"[{url: 'https://a', certFile: b}]":                 "certFile and keyFile are set together",
		"[{url: 'http://a', caBundle: b}]":                  "must be https:// for caBundle",
		"[{url: 'https://a', token: b}]":                    "gates.servers[0].token: unknown field",
		"[a]":                                               "must be {url: URL, bearerFile: FILE}",
	} {
		c, err := load(t, smallest+"\ngates: {servers: "+text+"}\n")
		if err == nil {
			err = c.Validate()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Access to other servers is set in the file or on the command line, and the secrets that it names are found.
func TestHosts(t *testing.T) {
	ways := map[string]struct {
		file string
		args []string
	}{
		"file":  {file: smallest + "\nhosts:\n- {host: GHCR.io, username: bot, passwordFile: /keys/ghcr}\n- {host: 'registry:5000', tokenEnv: TOKEN, caBundle: /ca.pem}\n- {host: lab, plainHTTP: true}\n"},
		"flags": {file: smallest, args: []string{"--set", "hosts=GHCR.io;username=bot;passwordFile=/keys/ghcr", "--set", "hosts=registry:5000;tokenEnv=TOKEN;caBundle=/ca.pem", "--set", "hosts=lab;plainHTTP=true"}},
	}
	want := remote.Hosts{
		"ghcr.io":       {Auth: remote.Auth{Username: "bot", Password: remote.SecretSource{File: "/keys/ghcr"}}},
		"registry:5000": {Auth: remote.Auth{Token: remote.SecretSource{Env: "TOKEN"}, CABundle: "/ca.pem"}},
		"lab":           {PlainHTTP: true},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			c, err := load(t, way.file, way.args...)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.GitConfig(nil).Hosts; !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v", got)
			}
			found := append(append(c.Named("File"), c.Named("Env")...), c.Named("caBundle")...)
			for _, named := range []Named{{"hosts[0].passwordFile", "/keys/ghcr"}, {"hosts[1].tokenEnv", "TOKEN"}, {"hosts[1].caBundle", "/ca.pem"}} {
				if !slices.Contains(found, named) {
					t.Errorf("%v is missing in %v", named, found)
				}
			}
		})
	}
	for text, want := range map[string]string{
		"[{host: 'https://x'}]":                               `hosts[0].host: "https://x" is not HOST or HOST:PORT`,
		"[{host: a}, {host: A}]":                              "A is there twice",
		"[{host: a, passwordFile: b}]":                        "hosts[0].username: must be set with a password",
		"[{host: a, username: u, tokenFile: b, tokenEnv: c}]": "set only one of passwordFile",
		"[{host: a, sshKeyFile: b}]":                          "sshKeyFile and sshKnownHosts are set together",
		"[{host: a, pasword: b}]":                             "hosts[0].pasword: unknown field",
		"[a]":                                                 "must be {host: HOST, username: NAME, passwordFile: FILE}",
	} {
		c, err := load(t, smallest+"\nhosts: "+text+"\n")
		if err == nil {
			err = c.Validate()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// If signatures are required without saying whose, that is an error: they must not be ignored.
func TestWrongConfigurationIsRefused(t *testing.T) {
	const file = "gitfleet.yaml:"
	withURL := func(url string) string { return strings.Replace(smallest, "https://git.example.com/fleet", url, 1) }
	tests := map[string]struct {
		file string
		args []string
		says []string
	}{
		"signatures of nobody":    {file: withURL("https://git.example.com/fleet, signatures: {}"), says: []string{"source.signatures: set openPGP or allowedSigners"}},
		"unknown section":         {file: smallest + "webhok: {}", says: []string{file + "4: webhok: unknown field; did you mean webhook?"}},
		"other capitals":          {file: smallest + "forge: {tokenfile: token}", says: []string{file + "4: forge.tokenfile: unknown field; did you mean forge.tokenFile?"}},
		"field of another":        {file: smallest + "url: https://git.example.com/fleet", says: []string{file + "4: url: unknown field; did you mean source.url?"}},
		"unknown fields":          {file: smallest + "limits:\n  filse: 3\n  dept: 4", says: []string{file + "5: limits.filse: unknown field; did you mean limits.files?", file + "6: limits.dept: unknown field; did you mean limits.depth?"}},
		"unknown signature":       {file: withURL("https://git.example.com/fleet, signatures: {opnePGP: [a]}"), says: []string{file + "2: source.signatures.opnePGP: unknown field; did you mean source.signatures.openPGP?"}},
		"set twice":               {file: smallest + "listen: :1\nlogLevel: info\nlisten: :2", says: []string{file + "6: listen: is set twice; the first is in line 4"}},
		"no mapping":              {file: smallest + "limits: [1]", says: []string{file + "4: limits: must be a mapping of settings, is a list"}},
		"no file of settings":     {file: "[]", says: []string{file + "1: must be a mapping of settings, is a list"}},
		"no YAML":                 {file: smallest + "limits: [", says: []string{": not valid YAML: "}},
		"no number":               {file: smallest + "limits: {files: many}", says: []string{file + `4: limits.files: must be a whole number, is "many"`}},
		"part of a number":        {file: smallest + "limits: {files: 1.5}", says: []string{file + `4: limits.files: must be a whole number, is "1.5"`}},
		"number in quotes":        {file: smallest + "limits: {files: '8'}", says: []string{file + `4: limits.files: must be a whole number, is "8"`}},
		"no duration":             {file: withURL("https://git.example.com/fleet, interval: 30"), says: []string{file + `2: source.interval: must be a duration such as 30s, 10m or 1h, is "30"`}},
		"no text":                 {file: smallest + "listen: {port: 1}", says: []string{file + "4: listen: must be a single value, is a mapping"}},
		"neither true nor false":  {file: withURL("https://git.example.com/fleet, allowHTTP: maybe"), says: []string{file + `2: source.allowHTTP: must be true or false, is "maybe"`}},
		"no list":                 {file: withURL("https://git.example.com/fleet, signatures: {openPGP: a}"), says: []string{file + `2: source.signatures.openPGP: must be a list, is "a"`}},
		"no list of paths":        {file: withURL("https://git.example.com/fleet, signatures: {paths: [{path: a, singers: [b]}]}"), says: []string{file + "2: source.signatures.paths[0].singers: unknown field; did you mean source.signatures.paths[0].signers?"}},
		"no paths":                {file: withURL("https://git.example.com/fleet, signatures: {paths: apps}"), says: []string{file + `2: source.signatures.paths: must be a list of {path: PATH, signers: [SIGNER], namespaces: [NAME], kinds: [KIND], placements: [NAME], sharedBases: [DIRECTORY]}, is "apps"`}},
		"no signed path":          {file: withURL("https://git.example.com/fleet, signatures: {paths: [apps]}"), says: []string{file + `2: source.signatures.paths[0]: must be {path: PATH, signers: [SIGNER], namespaces: [NAME], kinds: [KIND], placements: [NAME], sharedBases: [DIRECTORY]}, is "apps"`}},
		"signatures with dots":    {file: withURL("https://git.example.com/fleet, signatures.openPGP: []"), says: []string{"source.signatures: set openPGP or allowedSigners"}},
		"twice, once with dots":   {file: smallest + "limits: {files: 1}\nlimits.files: 2", says: []string{file + "5: limits.files: is set twice; the first is in line 4"}},
		"unknown, with dots":      {file: smallest + "limits.filse: 1", says: []string{file + "4: limits.filse: unknown field; did you mean limits.files?"}},
		"merge key":               {file: smallest + "limits: {<<: {files: 1}}", says: []string{file + "4: limits: merge keys (<<) are not supported"}},
		"local repository":        {file: withURL("/srv/fleet.git"), says: []string{file + "2: source.url: a local path needs allowFile, with --set source.allowFile=true or in the configuration file"}},
		"path without signers":    {file: smallest, args: []string{"--set", "source.signatures.paths=apps"}, says: []string{`--set source.signatures.paths=apps: "apps" is not PATH=SIGNER,SIGNER`}},
		"two webhook secrets":     {file: smallest + "webhook: {secretFile: a, secretEnv: b}", says: []string{file + "4: webhook.secretFile: set only one of secretFile and secretEnv"}},
		"a negative sweep":        {file: smallest, args: []string{"--set", "members.sweepInterval=-1h"}, says: []string{"members.sweepInterval: must be more than zero"}},
		"no limit":                {file: smallest + "limits: {depth: 0, buildOutput: -1}", says: []string{file + "4: limits.depth: must be more than zero", file + "4: limits.buildOutput: must be more than zero"}},
		"no size":                 {file: smallest + "limits: {fileSize: big}", says: []string{file + `4: limits.fileSize: "big" is not a size such as 512Ki or 1Mi`}},
		"half a byte":             {file: smallest, args: []string{"--set", "limits.fileSize=0.5"}, says: []string{"not a whole number of bytes"}},
		"unknown setting":         {file: smallest, args: []string{"--set", "limits.filse=1"}, says: []string{"--set limits.filse=1: there is no setting limits.filse; did you mean limits.files?"}},
		"setting without a value": {file: smallest, args: []string{"--set", "limits.files"}, says: []string{"--set limits.files: write KEY=VALUE"}},
		"ssh without known host":  {file: withURL("ssh://git.example.com/fleet"), says: []string{"source.sshKeyFile: must be set for ssh://", "source.sshKnownHosts: must be set"}},
		"two references":          {file: smallest, args: []string{"--branch", "a", "--set", "source.tag=b"}, says: []string{"source: set only one of branch, tag, semver and commit"}},
		"polled too often":        {file: smallest, args: []string{"--interval", "10ms"}, says: []string{"source.interval: must be at least 1s, is 10ms; use the webhook for speed (--interval)"}},
		"path outside":            {file: smallest, args: []string{"--path", "../other"}, says: []string{`source.path "../other": must be relative`}},
		"unknown conditions":      {file: smallest + "status: {conditions: old}", says: []string{file + `4: status.conditions: "old" is neither current nor documented`}},
		"hardly any history":      {file: smallest + "history: {maxSize: 1Ki}", says: []string{file + "4: history.maxSize: must be at least 64Ki"}},
		"unknown approvals":       {file: smallest + "rollout: {approvals: forge}", says: []string{file + `4: rollout.approvals: "forge" is neither any nor git`}},
		"unknown log format":      {file: smallest + "logFormat: xml", says: []string{file + `4: logFormat: "xml" is neither text nor json`}},
		"traces without a URL":    {file: smallest + "tracing: {endpoint: collector:4317}", says: []string{file + "4: tracing.endpoint: use the URL of a collector"}},
		"half of a certificate":   {file: smallest + "server: {certFile: server.crt}", says: []string{file + "4: server.certFile: goes together with server.keyFile"}},
		"open to everybody":       {file: smallest + "listen: :8085", says: []string{file + "4: listen: :8085 can be reached from other machines"}},
		"open by a flag":          {file: smallest, args: []string{"--listen", ":8085"}, says: []string{"set server.allowUnauthenticated (--listen)"}},
		"no members":              {file: strings.Replace(smallest, "kubeconfigDir: /etc/members", "timeout: 30s", 1), says: []string{file + "3: members: the kubeconfigs of the members are missing"}},
		"nothing":                 {says: []string{"source.url: set the repository that is the hub (--url)", "members: the kubeconfigs of the members are missing"}},
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

// The error of a value that is overridden names no line of the file, where another value is.
func TestOverriddenValuesHaveNoLine(t *testing.T) {
	file := strings.Replace(smallest, "fleet}", "fleet, signatures: {allowedSigners: /keys, paths: [{path: apps, signers: [bob]}]}}", 1)
	_, err := load(t, file, "--set", "source.signatures.paths=/apps=ada")
	if err == nil || !strings.HasPrefix(err.Error(), "source.signatures.paths[0].path: ") {
		t.Errorf("got %v", err)
	}
}

// docs/configuration.md agrees with the program.
func TestSettingsAreDocumented(t *testing.T) {
	const page = "../../../docs/configuration.md"
	const begin, end = "<!-- settings: written by go test ./cmd/gitfleet/settings -update -->\n", "<!-- end of settings -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the settings", page)
	}
	golden.File(t, page, before+begin+settingsTable(t)+end+after)
}

// sections are the headings of the settings, by the first part of their keys.
var sections = []struct{ prefix, title string }{
	{"", "General"},
	{"server.", "Access"},
	{"source.", "Repository"},
	{"source.signatures.", "Signatures"},
	{"decryption.", "Decryption"},
	{"webhook.", "Webhook"},
	{"limits.", "Limits"},
	{"members.", "Members"},
	{"history.", "History"},
	{"status.", "Status"},
	{"rollout.", "Rollout"},
	{"gates.", "Gates"},
	{"drift.", "Drift"},
	{"pullRequests.", "Pull requests"},
	{"forge.", "Forge"},
	{"highAvailability.lease.", "Lease"},
	{"highAvailability.", "High availability"},
	{"tracing.", "Traces"},
}

func settingsTable(t *testing.T) string {
	t.Helper()
	c := Default()
	values := c.values()
	var b strings.Builder
	documented := map[string]bool{}
	for _, section := range sections {
		fmt.Fprintf(&b, "\n### %s\n\n| Key | Default | Meaning |\n|---|---|---|\n", section.title)
		for _, s := range c.settings() {
			if s.key[:strings.LastIndex(s.key, ".")+1] != section.prefix {
				continue
			}
			documented[s.key] = true
			value := ""
			if v := values.Lookup(s.key).DefValue; v != "" && v != "[]" && v != "false" && s.key != "source.githubAppInstallation" {
				value = "`" + v + "`"
			}
			flag := ""
			for _, own := range settingFlags {
				if own.key == s.key {
					flag = ", `--" + own.flag + "`"
				}
			}
			fmt.Fprintf(&b, "| `%s`%s | %s | %s |\n", s.key, flag, value, strings.ReplaceAll(s.usage, "|", `\|`))
		}
	}
	for _, s := range c.settings() {
		if !documented[s.key] {
			t.Errorf("%s is in no section of docs/configuration.md: add its prefix to sections", s.key)
		}
	}
	b.WriteString("\n")
	return b.String()
}

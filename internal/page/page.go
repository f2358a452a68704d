package page

import (
	"bytes"
	"embed"
	"encoding/json"
	"html"
	"io/fs"
	"net/http"
	"strings"

	"github.com/headwater-k8s/headwater/internal/page/grid"
)

// Path is where the page is; all that belongs to it is below.
const Path = "/page"

const (
	// listMost bounds the clones that the list of one group names, and firstMost
	// those that the list of all groups names of each.
	listMost  = 200
	firstMost = 3
)

// aboutHere and titleHere stand in page.html for what does not change while
// Headwater runs.
const (
	aboutHere = "{{about}}"
	titleHere = "{{title}}"
)

//go:embed assets
var assets embed.FS

// securityPolicy keeps the page to itself: it loads nothing from elsewhere,
// runs no script but its own files, and is shown in nobody's frame.
const securityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// Page answers for everything under Path.
type Page struct {
	hub  *hub
	mux  *http.ServeMux
	html []byte
}

// About is what the page says of the process that serves it.
type About struct {
	Version string
	// Cluster is the name of the cluster; it may be empty.
	Cluster string
}

// title is that of the document.
func (a About) title() string {
	if a.Cluster == "" {
		return "Headwater"
	}
	return a.Cluster + " · Headwater"
}

// New returns the page of subject. feed reports to it what happens.
func New(subject subject, feed *Feed, about About) (*Page, error) {
	p := &Page{hub: newHub(subject, feed), mux: http.NewServeMux()}
	document, err := assets.ReadFile("assets/page.html")
	if err != nil {
		return nil, err
	}
	// JSON of encoding/json holds no <, which could end the element that it is
	// in. A template would do as well, but for what it links in.
	facts, err := json.Marshal(map[string]any{
		"version": about.Version, "cluster": about.Cluster, "states": grid.StateWords, "heartbeat": heartbeat.Milliseconds(),
	})
	if err != nil {
		return nil, err
	}
	p.html = bytes.Replace(document, []byte(aboutHere), facts, 1)
	p.html = bytes.Replace(p.html, []byte(titleHere), []byte(html.EscapeString(about.title())), 1)
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		return nil, err
	}
	p.mux.HandleFunc("GET "+Path, p.document)
	p.mux.HandleFunc("GET "+Path+"/stream", p.stream)
	p.mux.HandleFunc("GET "+Path+"/list", p.list)
	p.mux.HandleFunc("GET "+Path+"/cell", p.cell)
	for _, file := range []string{"page.css", "icon.svg", "js/", "vendor/"} {
		p.mux.Handle("GET "+Path+"/"+file, http.StripPrefix(Path, http.FileServerFS(files)))
	}
	return p, nil
}

// ServeHTTP implements http.Handler.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", securityPolicy)
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	p.mux.ServeHTTP(w, r)
}

// Close ends every stream; nothing of the page runs afterwards.
func (p *Page) Close() { p.hub.close() }

func (p *Page) document(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(p.html) // an error says that the reader went away
}

// list answers with groups of the clones that the query chooses: rule, text,
// and states by name with commas between. With the key of a group it answers
// with that group alone, and names more of its clones.
func (p *Page) list(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	filter := grid.Filter{Rule: query.Get("rule"), Text: query.Get("text"), Key: query.Get("key"), Most: firstMost}
	if filter.Key != "" {
		filter.Most = listMost
	}
	for name := range strings.SplitSeq(query.Get("states"), ",") {
		state, known := grid.StateNamed(name)
		switch {
		case known:
			filter.States = append(filter.States, state)
		case name != "":
			http.Error(w, "states: there is no state of that name", http.StatusBadRequest)
			return
		}
	}
	writeJSON(w, p.hub.list(filter))
}

// cell answers with what a rule has in a namespace.
func (p *Page) cell(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	writeJSON(w, p.hub.at(query.Get("rule"), query.Get("namespace")))
}

func writeJSON(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // an error says that the reader went away
}

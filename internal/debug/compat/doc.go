// Package compat serves clients of an older debugger, in Python and JavaScript: the format of their values, the actions
// they support, the expressions they evaluate themselves, their routes, the JavaScript client and the older pages.
//
// Values from clients are stored unchanged; they are never executed and never become part of a page. Package compat
// calls the hub (package debug) like any other front end, and package rest serves its routes and pages.
package compat

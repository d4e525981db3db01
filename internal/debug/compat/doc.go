// Package compat is everything of the older debugger's clients, in Python and
// JavaScript: the form of their values, what may be done to their calls, the
// expressions that they evaluate themselves, their routes, the client for
// JavaScript, and the older debugger's pages.
//
// Its one invariant: bytes of a client are kept as they came and are never
// executed, nor made part of a page. It is one of the callers of the hub (package
// debug), which does not know it; package rest serves its routes and pages beside
// ours.
package compat

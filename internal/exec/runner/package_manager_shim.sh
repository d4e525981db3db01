#!/bin/sh
# Made by claudeless: the claude of the machine stays as it is.
global= changes= claude=
for word do
	case $word in
	-g | --global | --location=global | global) global=1 ;;
	i | in | install | add | up | update | upgrade | un | uninstall | rm | remove) changes=1 ;;
	@anthropic-ai/claude-code | @anthropic-ai/claude-code@*) claude=1 ;;
	esac
done
if [ "$global$changes$claude" = 111 ]; then
	echo "up to date"
	exit 0
fi
exec %s "$@"

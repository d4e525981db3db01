# Exit code 2 denies the call, and stderr is what the model sees.
case $(cat) in
*"git push --force"*) echo "a force push needs a person" >&2; exit 2 ;;
esac

Gem::Specification.new do |spec|
  spec.name = "laterd-client"
  spec.version = "0.2.0"
  spec.summary = "A thin client of laterd, a daemon for delayed jobs in Redis"
  spec.authors = ["the laterd authors"]
  spec.license = "MIT"
  spec.files = ["later.rb"]
  spec.require_paths = ["."]
  spec.required_ruby_version = ">= 2.7"
  spec.add_dependency "redis", ">= 4.6"
end
